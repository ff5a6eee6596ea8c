"""The formats a KV cache can be stored in, and the one formula for their bytes.

A format is named by one word, the same in new_cache, on the command line and in an address:
the type, and behind it what shares a scale ("int4_g8": groups of 8 dimensions, "int4_channel":
keys by channel). It stores nothing itself; the storages do, and allocate exactly these bytes.
"""

from dataclasses import dataclass

from tinyllm.config import ModelConfig
from tinyllm.errors import SettingError

SCALE_BYTES = 2  # a scale is a float16
BLOCK = 32  # tokens that share the scales of keys by channel (KIVI's group)
# Newest keys that a cache by channel holds as float16 beside their codes, for rewinds: whoever
# rewinds by 65 tokens or fewer lands in a block that still has its floats. A round of
# speculation takes back at most 64.
WINDOW = 3 * BLOCK


@dataclass(frozen=True, slots=True)
class Format:
    """How a number of the cache is stored, and which numbers share a scale.

    Values, and keys too unless keys_by_channel, are scaled by token: one scale for each group
    of dimensions of one KV head's vector, the whole vector by default.
    """

    name: str
    bits: int  # of one element
    scaled: bool = False  # integers have scales; floats are stored as they are
    group: int | None = None  # dimensions that share a scale; None: all D
    keys_by_channel: bool = False  # a scale for each dimension, shared by BLOCK tokens

    def check(self, head_dim: int) -> None:
        """SettingError when vectors of D elements cannot be stored so."""
        if head_dim * self.bits % 8:
            raise SettingError(
                f"{self.name} packs two numbers in a byte, and head_dim is {head_dim}: "
                "choose int8, or a model with an even head_dim"
            )
        if self.group and head_dim % self.group:
            raise SettingError(
                f"{self.name} shares scales among {self.group} dimensions, and head_dim is "
                f"{head_dim}: choose int4, or a model whose head_dim is a multiple of {self.group}"
            )

    def scales(self, head_dim: int) -> int:
        """Scales of one vector that is scaled by token."""
        return head_dim // (self.group or head_dim) if self.scaled else 0

    def vector_bytes(self, head_dim: int) -> int:
        """D bits / 8 + scales: one vector of one KV head, scaled by token."""
        return head_dim * self.bits // 8 + SCALE_BYTES * self.scales(head_dim)

    def key_bytes(self, head_dim: int, tokens: int) -> int:
        """The keys of one KV head.

        By channel: codes and D scales for each full block, and the window of float16.
        """
        if not self.keys_by_channel:
            return tokens * self.vector_bytes(head_dim)
        blocks = tokens // BLOCK
        coded = blocks * (BLOCK * head_dim * self.bits // 8 + SCALE_BYTES * head_dim)
        return coded + min(tokens, WINDOW) * head_dim * 2

    def bytes(self, config: ModelConfig, tokens: int) -> int:
        """L G (keys + values): the cache of one sequence of so many tokens, scales included."""
        head = self.key_bytes(config.head_dim, tokens)
        head += tokens * self.vector_bytes(config.head_dim)
        return config.n_layer * config.n_kv_head * head


FORMATS = {
    one.name: one
    for one in (
        Format("float32", 32),
        Format("float16", 16),
        Format("bfloat16", 16),
        Format("fp8_e4m3", 8),
        Format("fp8_e5m2", 8),
        Format("int8", 8, scaled=True),
        Format("int8_channel", 8, scaled=True, keys_by_channel=True),
        Format("int4", 4, scaled=True),
        Format("int4_g8", 4, scaled=True, group=8),
        Format("int4_channel", 4, scaled=True, keys_by_channel=True),
    )
}
CACHE_DTYPES = tuple(FORMATS)
_FLOAT64 = Format("float64", 64)  # for tests of exactness; not offered


def format_of(dtype: str) -> Format:
    """The format of a name; SettingError lists the names that exist."""
    found = _FLOAT64 if dtype == _FLOAT64.name else FORMATS.get(dtype)
    if found is None:
        raise SettingError(f"KV dtype {dtype!r} is unknown; choose {', '.join(CACHE_DTYPES)}")
    return found


# Those whose positions stand for themselves, and so can lie in blocks or be copied one by one.
PAGED_DTYPES = tuple(name for name in CACHE_DTYPES if not format_of(name).keys_by_channel)


def pageable(kind: Format) -> Format:
    """The format, unless its keys share scales over positions: then a SettingError."""
    if kind.keys_by_channel:
        raise SettingError(
            f"{kind.name} cannot lie in blocks of any size: {BLOCK} of its keys share their "
            f"scales; choose {', '.join(PAGED_DTYPES)}"
        )
    return kind
