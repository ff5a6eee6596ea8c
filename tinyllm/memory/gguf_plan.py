"""GGUF metadata -> CachePlan: what llama.cpp keeps of a converted model, layer by layer.

Head counts are one number or one a layer; 0 means that the layer keeps a state, or nothing when it
is a feed-forward layer. Source: llama.cpp (October 2026), gguf-py/gguf/constants.py for the names,
src/llama-hparams.cpp for the sizes of states, and src/models for windows.
"""

from collections.abc import Iterator, Mapping

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan, collate
from tinyllm.memory.fields import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, Fields, whole_number
from tinyllm.memory.gguf_header import read_header
from tinyllm.memory.layers import Attention, AttentionKind, Latent, Layer, Placed, State

ARCHITECTURE = "general.architecture"
# Architecture -> layers of one window period; the last of a period is full.
_PERIODS = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4, "olmo2": 4, "exaone4": 4}
_PERIODS |= {"exaone-moe": 4, "afmoe": 4}
_CHUNKED = {"llama4": (4, 8_192)}
_IGNORE_WINDOW = {"llama", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "phi3", "starcoder2"}
_IGNORE_WINDOW |= {"mistral3", "phimoe"}
_PARALLEL = {"falcon-h1"}  # attention and a state in every layer
# Names under {arch}.attention that do not change what is kept.
_INERT = {
    *("layer_norm_epsilon", "layer_norm_rms_epsilon", "causal", "clamp_kqv", "max_alibi_bias"),
    *("scale", "output_scale", "q_lora_rank", "key_length_mla", "value_length_mla"),
    *("temperature_length", "temperature_scale", "group_norm_epsilon", "group_norm_groups"),
    *("relative_buckets_count", "value_length"),
}


def plan_gguf(content: bytes) -> CachePlan:
    """The cache of a model from the first bytes of its GGUF file."""
    return plan_metadata(read_header(content))


def plan_metadata(metadata: Mapping[str, object]) -> CachePlan:
    """The cache of a model from the keys of a GGUF header."""
    family = metadata.get(ARCHITECTURE)
    if not isinstance(family, str) or not family:
        raise MemoryPlanError(f"{ARCHITECTURE} is missing: the name of an architecture")
    keys = {
        key.removeprefix(f"{family}."): value
        for key, value in metadata.items()
        if key.startswith(f"{family}.")
    }
    fields = Fields(keys, f"{family}.")
    placed = list(_layers(fields, family))
    fields.ignore(*(f"attention.{name}" for name in _INERT))
    for key in keys:
        if key.startswith(("attention.", "ssm.", "shortconv.", "kda.")) and key not in fields.read:
            raise MemoryPlanError(
                f"{fields.name(key)}: not known for this architecture, and might change the cache"
            )
    notes = (f"read from a GGUF header, architecture {family}",)
    return CachePlan("gguf", collate(placed), notes, fields.whole("block_count"))


def _layers(fields: Fields, family: str) -> Iterator[Placed]:
    count = fields.whole("block_count", high=MOST_LAYERS)
    count -= fields.whole("nextn_predict_layers", low=0, high=count - 1, default=0)
    count -= fields.whole("attention.shared_kv_layers", low=0, high=count - 1, default=0)
    if fields.has("kda.head_dim"):
        raise MemoryPlanError(f"{fields.name('kda.head_dim')}: KDA is read from a config.json only")
    # Files from before MLA was absorbed lack key_length_mla; llama.cpp keeps full heads for them.
    if fields.has("attention.kv_lora_rank") and fields.has("attention.key_length_mla"):
        yield from _latent(fields, count)
        return
    heads = _per_layer(fields, "attention.head_count_kv", count)
    slides, window, kind = _windows(fields, family, count)
    interval = _interval(fields, family)
    feeds = _per_layer(fields, "feed_forward_length", count) if family == "nemotron_h" else []
    for index in range(count):
        is_state = bool(interval) and (index + 1) % interval != 0
        if heads[index] and not is_state:
            layer = _attention(fields, heads[index], slides[index], kind, window)
            yield Placed(index, layer, f"attention.head_count_kv {heads[index]}")
        keeps_state = is_state or not heads[index] or family in _PARALLEL
        if keeps_state and not (feeds and feeds[index]):
            yield Placed(index, _state(fields), "ssm. or shortconv. keys")


def _latent(fields: Fields, count: int) -> Iterator[Placed]:
    """MLA: the K row alone."""
    rope = fields.whole("rope.dimension_count", low=0)
    layer: Layer = Latent(fields.whole("attention.kv_lora_rank"), rope)
    fields.ignore("attention.head_count", "attention.head_count_kv", "attention.key_length")
    yield from (Placed(index, layer, "attention.kv_lora_rank") for index in range(count))


def _per_layer(fields: Fields, key: str, count: int) -> list[int]:
    """One number for all layers, or a list of one a layer."""
    if isinstance(fields.get(key), list):
        return fields.wholes(key, count, 0, 2**31, spare=True)
    if key == "attention.head_count_kv" and not fields.has(key):
        key = "attention.head_count"  # as many KV heads as heads
        if isinstance(fields.get(key), list):
            return fields.wholes(key, count, 0, MOST_HEADS, spare=True)
    return [fields.whole(key, low=0, high=2**31)] * count


def _attention(
    fields: Fields, heads: int, slides: bool, kind: AttentionKind, window: int | None
) -> Attention:
    """One layer with KV heads."""
    whole_number(fields.name("attention.head_count_kv"), heads, 1, MOST_HEADS)
    if fields.has("attention.key_length"):
        key_dim = fields.whole("attention.key_length")
    else:
        count = fields.get("attention.head_count")
        most = max(count) if isinstance(count, list) and count else count
        query_heads = whole_number(fields.name("attention.head_count"), most, 1, MOST_HEADS)
        key_dim = fields.whole("embedding_length") // query_heads
    value_dim = fields.whole("attention.value_length", default=key_dim)
    if not slides:
        fields.ignore("attention.head_count")
        return Attention("full", heads, max(1, key_dim), value_dim)
    key_dim = fields.whole("attention.key_length_swa", default=key_dim)
    value_dim = fields.whole("attention.value_length_swa", default=value_dim)
    return Attention(kind, heads, key_dim, value_dim, window)


def _windows(
    fields: Fields, family: str, count: int
) -> tuple[list[bool], int | None, AttentionKind]:
    """Whether each layer slides, the window, and whether it is one or a chunk."""
    fields.ignore("attention.head_count", "attention.key_length_swa", "attention.value_length_swa")
    if family in _CHUNKED:
        period, chunk = _CHUNKED[family]
        fields.ignore("attention.sliding_window", "attention.chunk_size")
        return [(index + 1) % period != 0 for index in range(count)], chunk, "chunk"
    key = "attention.sliding_window"
    if family in _IGNORE_WINDOW or not fields.has(key) or fields.get(key) == 0:
        fields.ignore(key, f"{key}_pattern")
        return [False] * count, None, "window"
    window = fields.whole(key, high=MOST_TOKENS)
    pattern = fields.get(f"{key}_pattern")
    if isinstance(pattern, list):
        flags = fields.per_layer(f"{key}_pattern", count, spare=True)
        return [bool(flag) for flag in flags], window, "window"
    if pattern is None and family not in _PERIODS:
        raise MemoryPlanError(
            f"{fields.name(key)} is {window}, and which layers of {family} slide is not known"
        )
    period = fields.whole(f"{key}_pattern", high=MOST_LAYERS, default=_PERIODS.get(family))
    return [(index + 1) % period != 0 for index in range(count)], window, "window"


def _interval(fields: Fields, family: str) -> int:
    """Every so many layers there is attention and between them states; 0 when lists say so."""
    default = 4 if family in ("qwen3next", "qwen35", "qwen35moe") else 0
    return fields.whole("full_attention_interval", low=0, high=MOST_LAYERS, default=default)


def _state(fields: Fields) -> State:
    """A state: n_embd_r and n_embd_s of llama.cpp's hyperparameters, in 32 bits."""
    if fields.has("shortconv.l_cache"):
        taps = fields.whole("shortconv.l_cache", high=1_024)
        return State("short convolution", taps - 1, fields.whole("embedding_length"), 0, 4)
    inner, size = fields.whole("ssm.inner_size"), fields.whole("ssm.state_size")
    groups = fields.whole("ssm.group_count", low=0, high=MOST_HEADS, default=0)
    taps = fields.whole("ssm.conv_kernel", high=1_024)
    fields.ignore("ssm.time_step_rank", "ssm.dt_b_c_rms")
    return State("state", taps - 1, inner, inner * size, 4, groups, 2 * size)
