"""SGLang 0.5: bytes of a token on one GPU, and how a pool is split among kinds of layers.

Windowed layers have a pool of their own, swa_full_tokens_ratio as long; states get a share of the
memory by mamba_full_memory_ratio. The log says GB and means GiB. Source: SGLang,
python/sglang/srt/model_executor/pool_configurator.py and mem_cache/kv_cache_configurator.py.
"""

from dataclasses import dataclass
from fractions import Fraction

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.dtypes import CacheTypes
from tinyllm.memory.engines.shards import token_bytes
from tinyllm.memory.fields import MOST_TOKENS, shown, whole_number
from tinyllm.memory.layers import Index, State

VERSION = "SGLang 0.5"
MOST_BYTES = 2**50
_MOST_RANKS = 1_024
TYPES = ("bfloat16", "float16", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1", "fp8_ds_mla")


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags that change the cache, with SGLang's defaults."""

    dtype: str = "bfloat16"
    tensor_parallel: int = 1
    page_size: int = 1
    swa_full_tokens_ratio: float = 0.8
    mamba_full_memory_ratio: float = 0.9

    def __post_init__(self) -> None:
        whole_number("tensor_parallel", self.tensor_parallel, 1, _MOST_RANKS)
        whole_number("page_size", self.page_size, 1, 65_536)
        for name in ("swa_full_tokens_ratio", "mamba_full_memory_ratio"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 16:
                raise MemoryPlanError(f"{name} must be above 0 and at most 16, not {shown(value)}")


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """Bytes that one token leaves on one GPU."""

    full_keys: int  # of layers that keep every token; latents and index keys count as keys
    full_values: int
    window_keys: int
    window_values: int
    state: int  # of one request, all layers

    @property
    def full(self) -> int:
        return self.full_keys + self.full_values

    @property
    def window(self) -> int:
        return self.window_keys + self.window_values


@dataclass(frozen=True, slots=True)
class Pools:
    """What a pool of memory on one GPU holds."""

    tokens: int  # the log's max_total_num_tokens
    window_tokens: int  # of the pool of windowed layers; 0 without one
    state_slots: int  # requests whose states fit; 0 without states
    k_bytes: int
    v_bytes: int

    @property
    def log_line(self) -> str:
        """What SGLang prints of the buffers of keys and values; its GB are GiB."""
        keys, values = self.k_bytes / 2**30, self.v_bytes / 2**30
        return (
            f"KV Cache is allocated. #tokens: {self.tokens}, "
            f"K size: {keys:.2f} GB, V size: {values:.2f} GB"
        )


def per_token(plan: CachePlan, settings: Settings) -> TokenBytes:
    """Bytes of one token on one GPU, by kind of layer."""
    types = CacheTypes.named(settings.dtype)
    if types.key.name not in TYPES:
        raise MemoryPlanError(
            f"SGLang has no cache type {shown(settings.dtype)}: one of {', '.join(TYPES)}"
        )
    sums = {"full": [0, 0], "window": [0, 0]}
    state = 0
    for entry in plan.entries:
        if entry.kind in ("cross", "compressed"):
            raise MemoryPlanError(f"how SGLang 0.5 sizes {entry.kind} layers is not known here")
        if isinstance(entry.layer, State):
            state += entry.count * entry.layer.state_bytes(settings.tensor_parallel)
            continue
        kind = "window" if entry.kind in ("window", "chunk") else "full"
        keys, values = token_bytes(entry.layer, types, settings.tensor_parallel)
        count = entry.count
        if isinstance(entry.layer, Index):
            keys, count = _index_bytes(plan, entry.layer, count)
        sums[kind][0] += count * keys
        sums[kind][1] += count * values
    (full_keys, full_values), (window_keys, window_values) = sums["full"], sums["window"]
    return TokenBytes(full_keys, full_values, window_keys, window_values, state)


def _index_bytes(plan: CachePlan, layer: Index, count: int) -> tuple[int, int]:
    """Bytes of an index key, and the layers that hold one.

    Beside latents it is fp8 with a scale per 128, in every layer, also those that share another's;
    beside KV heads (MiniMax-M3) it is 16-bit, in the sparse layers.
    """
    latents = sum(entry.count for entry in plan.entries if entry.kind == "latent")
    if latents:
        return layer.dim + layer.dim // 128 * 4, latents
    return 2 * layer.dim, count


def held(plan: CachePlan, settings: Settings, tokens: int) -> Pools:
    """The buffers of a server with that max_total_num_tokens."""
    whole_number("tokens", tokens, 0, MOST_TOKENS)
    each = per_token(plan, settings)
    full, window = _split(each, settings, tokens)
    return _pools(each, full, window, 0)


def pools(plan: CachePlan, settings: Settings, pool_bytes: int) -> Pools:
    """What SGLang makes of `pool_bytes` of memory on one GPU."""
    whole_number("pool_bytes", pool_bytes, 0, MOST_BYTES)
    each = per_token(plan, settings)
    slots = 0
    if each.state:
        ratio = Fraction(settings.mamba_full_memory_ratio).limit_denominator(1000)
        slots = int(pool_bytes * ratio / (1 + ratio) // each.state)
    cell = Fraction(each.full)
    if each.window:
        ratio = Fraction(settings.swa_full_tokens_ratio).limit_denominator(1000)
        cell += each.window * (ratio if each.full else 1)
    tokens = int((pool_bytes - slots * each.state) // cell) if cell else 0
    full, window = _split(each, settings, tokens)
    return _pools(each, full, window, slots)


def _split(each: TokenBytes, settings: Settings, tokens: int) -> tuple[int, int]:
    """Tokens of the full and of the windowed pool, in whole pages."""
    page = settings.page_size
    whole = tokens // page * page
    if not each.window:
        return whole, 0
    if not each.full:
        return 0, whole
    return whole, int(whole * settings.swa_full_tokens_ratio) // page * page


def _pools(each: TokenBytes, full: int, window: int, slots: int) -> Pools:
    keys = full * each.full_keys + window * each.window_keys
    values = full * each.full_values + window * each.window_values
    return Pools(full or window, window, slots, keys, values)
