"""llama.cpp (tree of October 2026): cells of the KV cache over slots, and the recurrent state.

`-c` is the total over slots, in steps of 256 cells. Windows are honoured for the architectures that
ask for it. Sources: src/llama-kv-cache-iswa.cpp, src/llama-kv-cache.cpp and the
hyperparameters of each architecture in src/models.
"""

from dataclasses import dataclass

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.dtypes import CacheTypes, cache_type
from tinyllm.memory.fields import MOST_TOKENS, shown, whole_number
from tinyllm.memory.layers import Attention, Latent, Layer, State

VERSION = "llama.cpp, tree of October 2026"
PADDING = 256
MOST_SLOTS = 256  # LLAMA_MAX_SEQ
DEFAULT_SLOTS = 4  # of llama-server without -np, which then share one cache
TYPES = (*("float32", "float16", "bfloat16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"),)
# Architectures whose windowed layers get a small cache of their own.
HONOURED = {
    *("gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "gemma4", "gemma4_text"),
    *("gpt_oss", "cohere2", "cohere2_moe", "llama4", "llama4_text", "mimo_v2_flash", "mimo_v2"),
    *("olmo3", "exaone4", "exaone_moe", "afmoe", "layer_plan", "gguf"),
}
# Converted to architectures that keep every token: Mistral and Mixtral become llama, and the
# window of Phi-3 is switched off on purpose.
KEEP_ALL = {
    *("mistral", "mixtral", "qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl_text", "qwen3"),
    *("qwen3_moe", "starcoder2", "phi3", "phimoe"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """llama-server's flags that change the cache: -c, -np, -kvu, -ctk, -ctv, -ub, --swa-full."""

    context: int
    slots: int | None = None
    unified: bool | None = None
    key_type: str = "f16"
    value_type: str = "f16"
    micro_batch: int = 512
    swa_full: bool = False

    def __post_init__(self) -> None:
        whole_number("context", self.context, 1, MOST_TOKENS)
        whole_number("micro_batch", self.micro_batch, 1, MOST_TOKENS)
        if self.slots is not None:
            whole_number("slots", self.slots, 1, MOST_SLOTS)
        for kind in (self.key_type, self.value_type):
            if cache_type(kind).name not in TYPES:
                raise MemoryPlanError(
                    f"llama.cpp has no cache type {shown(kind)}: one of {', '.join(TYPES)}"
                )

    @property
    def sequences(self) -> int:
        """Slots, 4 unless -np is given."""
        return DEFAULT_SLOTS if self.slots is None else self.slots

    @property
    def shares(self) -> bool:
        """Whether slots share one cache: without -np they do, with it only by -kvu."""
        return self.slots is None if self.unified is None else self.unified


@dataclass(frozen=True, slots=True)
class Cache:
    """What llama.cpp allocates over all slots."""

    settings: Settings
    cells: int  # of layers that keep every token, over all slots
    window_cells: int  # the most that a windowed layer has, over all slots; 0 without one
    kv_bytes: int
    recurrent_bytes: int
    starts: bool  # llama.cpp refuses quantised heads that blocks do not divide
    notes: tuple[str, ...]

    @property
    def total_bytes(self) -> int:
        return self.kv_bytes + self.recurrent_bytes


def cache(plan: CachePlan, settings: Settings) -> Cache:
    """The cache by llama.cpp's rules; MemoryPlanError for layers whose rules are not known."""
    types = CacheTypes.named("f16", settings.key_type, settings.value_type)
    windowed = [entry for entry in plan.entries if entry.kind in ("window", "chunk")]
    honours = _honours(plan.model_type) if windowed else False
    odd_heads = [size for entry in plan.entries for size in _odd_heads(entry.layer, types)]
    kv_bytes = recurrent_bytes = window_cells = 0
    for entry in plan.entries:
        recurrent_bytes += entry.count * settings.sequences * _state_bytes(entry.layer)
        cells = _cells(entry.layer, settings, honours)
        kv_bytes += entry.count * cells * _row_bytes(entry.layer, types)
        if entry.kind in ("window", "chunk") and honours:
            window_cells = max(window_cells, cells)
    return Cache(
        settings,
        _padded_context(settings),
        window_cells,
        kv_bytes,
        recurrent_bytes,
        not odd_heads,
        tuple(_notes(settings, bool(windowed) and not honours, odd_heads)),
    )


def _odd_heads(layer: Layer, types: CacheTypes) -> list[int]:
    """Head dimensions that the blocks of their type do not divide."""
    if not isinstance(layer, Attention):
        return []
    pairs = ((types.key, layer.key_dim), (types.value, layer.value_dim))
    return [dim for kind, dim in pairs if dim % kind.block]


def _notes(settings: Settings, ignored: bool, odd_heads: list[int]) -> list[str]:
    """What a reader of the numbers should know."""
    notes = []
    if odd_heads:
        notes.append(f"llama.cpp does not start: blocks do not divide a head of {odd_heads[0]}")
    if ignored:
        notes.append("llama.cpp ignores this model's window: windowed layers keep every token")
    if cache_type(settings.value_type).block > 1:
        notes.append("a quantised V cache needs flash attention (-fa on)")
    return notes


def _honours(family: str) -> bool:
    """Whether the architecture's windows are honoured."""
    if family in HONOURED or family in KEEP_ALL:
        return family in HONOURED
    raise MemoryPlanError(f"whether llama.cpp honours the window of {family!r} is not known here")


def _pad(cells: int) -> int:
    return -(-cells // PADDING) * PADDING


def _slot_cells(settings: Settings) -> tuple[int, int]:
    """Cells of one cache, and the number of caches."""
    total = _pad(settings.context)
    if settings.shares:
        return total, 1
    return _pad(total // settings.sequences), settings.sequences


def _padded_context(settings: Settings) -> int:
    """Cells over all slots."""
    cells, caches = _slot_cells(settings)
    return cells * caches


def _cells(layer: Layer, settings: Settings, honours: bool) -> int:
    """Cells of one layer over all slots."""
    cells, caches = _slot_cells(settings)
    if isinstance(layer, Attention) and layer.limit and honours and not settings.swa_full:
        window = layer.limit * (settings.sequences if settings.shares else 1)
        cells = _pad(min(cells, window + settings.micro_batch))
    return cells * caches


def _row_bytes(layer: Layer, types: CacheTypes) -> int:
    """Bytes of one cell of one layer."""
    if isinstance(layer, Attention) and layer.kind != "cross":
        return layer.row_bytes(types)
    if isinstance(layer, Latent):  # the K row alone
        return layer.row_bytes(types)
    if isinstance(layer, State):
        return 0
    raise MemoryPlanError(f"how llama.cpp sizes {layer.kind} layers is not known here")


def _state_bytes(layer: Layer) -> int:
    """Bytes of one slot's state, all of it in 32 bits."""
    return 4 * sum(layer.elements()) if isinstance(layer, State) else 0
