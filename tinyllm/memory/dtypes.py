"""Bytes of one cached vector in every cache type of vLLM, llama.cpp and SGLang, scales included.

A type packs `block` elements into `block_bytes` and adds `scale_bytes` per vector, so every size is
an exact integer. Sources: ggml-common.h (q8_0 is 32 int8 and one float16), vLLM 0.32
kv_cache_interface.py (per-token-head scales, nvfp4, fp8_ds_mla), SGLang 0.5 memory_pool.py.
"""

from dataclasses import dataclass

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import shown


@dataclass(frozen=True, slots=True)
class CacheType:
    """How a vector of a cache is stored."""

    name: str
    block: int  # elements stored together
    block_bytes: int  # their bytes, block scales included
    scale_bytes: int = 0  # per vector (one head of one token)

    def row_bytes(self, heads: int, elements: int) -> int:
        """Bytes of the vectors of all heads of one token, whose blocks may run across heads.

        MemoryPlanError when blocks do not divide the row.
        """
        blocks, rest = divmod(heads * elements, self.block)
        if rest:
            raise MemoryPlanError(
                f"{self.name} stores blocks of {self.block} elements, and {heads} x {elements} is "
                "not a multiple: choose a 16-bit or 8-bit type"
            )
        return blocks * self.block_bytes + heads * self.scale_bytes

    def vector_bytes(self, elements: int) -> int:
        """Bytes of one vector."""
        return self.row_bytes(1, elements)

    def latent_bytes(self, latent: int, rope: int) -> int:
        """Bytes of one MLA row: a latent and the shared rotary part, in one vector."""
        if self is DS_MLA:  # fp8 latent, a float32 scale per 128 of it, 16-bit rotary part
            return latent + -(-latent // 128) * 4 + 2 * rope
        return self.vector_bytes(latent + rope)

    def index_bytes(self, elements: int) -> int:
        """Bytes of one indexer key: as the cache when 16 bits or wider, else fp8 with scales."""
        if self.block == 1 and self.block_bytes >= 2:
            return self.vector_bytes(elements)
        return elements + -(-elements // 128) * 4


DS_MLA = CacheType("fp8_ds_mla", 1, 1)

_TYPES = (
    CacheType("float32", 1, 4),
    CacheType("bfloat16", 1, 2),
    CacheType("float16", 1, 2),
    CacheType("fp8_e4m3", 1, 1),
    CacheType("fp8_e5m2", 1, 1),
    CacheType("int8_per_token_head", 1, 1, 4),
    CacheType("fp8_per_token_head", 1, 1, 4),
    CacheType("int4_per_token_head", 2, 1, 4),
    CacheType("nvfp4", 16, 9),
    CacheType("fp4_e2m1", 16, 9),
    DS_MLA,
    CacheType("q8_0", 32, 34),
    CacheType("q5_1", 32, 24),
    CacheType("q5_0", 32, 22),
    CacheType("q4_1", 32, 20),
    CacheType("q4_0", 32, 18),
    CacheType("iq4_nl", 32, 18),
)
_ALIASES = {
    "auto": "bfloat16",  # the model's 16 bits
    "f32": "float32",
    "fp32": "float32",
    "bf16": "bfloat16",
    "f16": "float16",
    "fp16": "float16",
    "half": "float16",
    "fp8": "fp8_e4m3",
}
CACHE_TYPES = {kind.name: kind for kind in _TYPES}


def cache_type(name: object) -> CacheType:
    """The type of that name or alias; MemoryPlanError lists the names otherwise."""
    if isinstance(name, str):
        found = CACHE_TYPES.get(_ALIASES.get(name, name))
        if found is not None:
            return found
    known = ", ".join([*CACHE_TYPES, *_ALIASES])
    raise MemoryPlanError(f"unknown cache type {shown(name)}: one of {known}")


@dataclass(frozen=True, slots=True)
class CacheTypes:
    """The types of keys and values, which llama.cpp lets one choose apart."""

    key: CacheType
    value: CacheType

    @classmethod
    def named(cls, dtype: object, key: object = None, value: object = None) -> "CacheTypes":
        """One type for both, unless `key` or `value` says otherwise."""
        return cls(
            cache_type(dtype if key is None else key), cache_type(dtype if value is None else value)
        )
