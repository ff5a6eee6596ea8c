"""Models that mix attention with layers that keep a state, and models with states alone.

A reader names its two kinds of layers and lays them out by the config's list, pattern or period.
Sources: the configuration classes of transformers 5.24, and the config.json of each model.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import states
from tinyllm.memory.fields import MOST_LAYERS, MOST_TOKENS, Fields
from tinyllm.memory.latent import read_latent
from tinyllm.memory.layers import Attention, Layer, Placed, State
from tinyllm.memory.shape import HEAD_KEYS, WIDTH_KEYS, read_count, read_heads

_ATTENTION = {"full_attention", "attention"}
_STATE = {"linear_attention", "mamba", "mamba2", "conv"}
_NOTHING = {"mlp", "moe"}  # layers of their own in Nemotron-H
_PATTERN = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


@dataclass(frozen=True, slots=True)
class Mix:
    """The two kinds of layers of a hybrid."""

    attention: Layer
    origin: str  # of the attention's numbers
    state: State

    @classmethod
    def of(cls, fields: Fields, state: State) -> "Mix":
        """Ordinary attention beside a state."""
        heads = read_heads(fields)
        return cls(heads.full(), heads.rule, state)

    def placed(self, index: int, is_attention: bool, why: str) -> Placed:
        """One layer of either kind."""
        if is_attention:
            return Placed(index, self.attention, f"{self.origin}; {why}")
        bits = 8 * self.state.recurrent_bytes
        return Placed(index, self.state, f"{self.state.mixer}, {bits}-bit state; {why}")


def listed_layers(fields: Fields, key: str, mix: Mix) -> Iterator[Placed]:
    """Layers as a list of type names lays them out."""
    return named_layers(fields.names(key, read_count(fields)), fields.name(key), mix)


def named_layers(names: Iterable[str], key: str, mix: Mix) -> Iterator[Placed]:
    """Layers by the names of their types; MemoryPlanError for a name that is not known."""
    for index, name in enumerate(names):
        if name in _ATTENTION or name in _STATE:
            yield mix.placed(index, name in _ATTENTION, key)
        elif name not in _NOTHING:
            raise MemoryPlanError(
                f"{key}[{index}] is {name!r}, which is not known for this model type: "
                f"one of {', '.join(sorted(_ATTENTION | _STATE | _NOTHING))}"
            )


def periodic_layers(
    count: int, is_attention: Callable[[int], bool], why: str, mix: Mix
) -> Iterator[Placed]:
    """Layers as a function of their number lays them out."""
    return (mix.placed(index, is_attention(index), why) for index in range(count))


def delta_net_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Qwen3-Next, Qwen3.5 and OLMo Hybrid: Gated DeltaNet, every fourth layer attention."""
    count, mix = read_count(fields), Mix.of(fields, states.gated_delta_net(fields))
    if fields.has("layer_types"):
        fields.ignore("full_attention_interval")
        return listed_layers(fields, "layer_types", mix)
    period = fields.whole("full_attention_interval", high=MOST_LAYERS, default=4)
    rule = f"every {period}th layer is full (full_attention_interval)"
    return periodic_layers(count, lambda i: (i + 1) % period == 0, rule, mix)


def kimi_linear_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Kimi Linear: KDA, and MLA in the layers that linear_attn_config counts from 1."""
    count, latent = read_count(fields), read_latent(fields)
    section = fields.section("linear_attn_config")
    mix = Mix(latent, "kv_lora_rank", states.kimi_delta_attention(section or fields))
    if section is None:
        yield from listed_layers(fields, "layer_types", mix)
        return
    rows = {}
    for key in ("full_attn_layers", "kda_layers"):
        for number in section.items(key):
            if not isinstance(number, int) or not 1 <= number <= count or number in rows:
                raise MemoryPlanError(
                    f"{section.name(key)} must list each layer once, from 1 to {count}"
                )
            rows[number] = mix.placed(number - 1, key == "full_attn_layers", key)
    if len(rows) != count:
        raise MemoryPlanError(
            f"{section.name('full_attn_layers')} and kda_layers name {len(rows)} of {count} layers"
        )
    yield from (rows[number] for number in sorted(rows))


def nemotron_h_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Nemotron-H: Mamba-2, attention and feed-forward layers in the order of a pattern."""
    mix = Mix.of(fields, states.mamba_2(fields))
    fields.ignore("expand", "sliding_window", "num_query_groups", "time_step_rank")
    for key in ("layers_block_type", "layer_types"):
        if fields.has(key):  # the list says how many; num_hidden_layers may be left out
            names = fields.names(key, len(fields.items(key)))
            fields.ignore("num_hidden_layers")
            return named_layers(names, fields.name(key), mix)
    pattern = fields.text("hybrid_override_pattern")
    key = fields.name("hybrid_override_pattern")
    if len(pattern) != read_count(fields) or not set(pattern) <= set(_PATTERN):
        raise MemoryPlanError(f"{key} must be letters M, *, - and E, one a layer")
    return named_layers((_PATTERN[letter] for letter in pattern), key, mix)


def mamba_2_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Granite 4-H and Bamba: Mamba-2, with attention where the config lists it."""
    count = read_count(fields)
    if family == "bamba":
        chosen = fields.items("attn_layer_indices") if fields.has("attn_layer_indices") else []
        mix = Mix.of(fields, states.mamba_2(fields))
        return periodic_layers(count, chosen.__contains__, "attn_layer_indices", mix)
    key = "layer_types" if fields.has("layer_types") else "layers_block_type"
    if set(fields.names(key, count)) <= _ATTENTION:  # Granite 4 without states
        fields.ignore(*(name for name in fields.values if name.startswith("mamba_")))
        heads = read_heads(fields)
        return (Placed(index, heads.full(), f"{heads.rule}; {key}") for index in range(count))
    return listed_layers(fields, key, Mix.of(fields, states.mamba_2(fields)))


def parallel_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Falcon-H1: every layer has attention and Mamba-2 side by side."""
    mix = Mix.of(fields, states.mamba_2(fields))
    for index in range(read_count(fields)):
        for is_attention in (True, False):
            yield mix.placed(index, is_attention, "in every layer")


def jamba_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Jamba: Mamba-1, with attention where (layer - offset) is a multiple of the period."""
    count, mix = read_count(fields), Mix.of(fields, states.mamba_1(fields))
    period = fields.whole("attn_layer_period", high=MOST_LAYERS)
    offset = fields.whole("attn_layer_offset", low=0, high=period - 1)
    rule = f"attention in layers {offset} + {period} n (attn_layer_period)"
    return periodic_layers(count, lambda i: i % period == offset, rule, mix)


def zamba_2_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Zamba2: Mamba-2 in every layer, and shared-weight attention, twice as wide, in some."""
    count = read_count(fields)
    query_heads = fields.whole(*HEAD_KEYS)
    dim = 2 * fields.whole(*WIDTH_KEYS) // query_heads
    fields.ignore("attention_head_dim", "attention_hidden_size", "kv_channels")
    fields.ignore("hybrid_layer_ids", "num_query_groups")
    number = fields.whole("num_key_value_heads", default=query_heads, high=query_heads)
    origin = f"{number} KV heads of twice the width, head_dim {dim}"
    mix = Mix(Attention("full", number, dim, dim), origin, states.mamba_2(fields))
    for index, name in enumerate(fields.names("layers_block_type", count)):
        if name not in ("hybrid", *_STATE):
            raise MemoryPlanError(
                f"{fields.name('layers_block_type')}[{index}] must be mamba or hybrid, not {name!r}"
            )
        if name == "hybrid":
            yield mix.placed(index, True, "layers_block_type hybrid")
        yield mix.placed(index, False, "layers_block_type")


def mamba_only_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Mamba, Mamba-2 and Falcon-Mamba: a state in every layer, and no cache that grows."""
    state = states.mamba_2(fields) if fields.has("num_heads") else states.mamba_1(fields)
    fields.ignore("time_step_rank")
    for index in range(read_count(fields)):
        yield Placed(index, state, f"{state.mixer} in every layer")


def short_convolution_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """LFM2: gated short convolutions, with attention where the config lists it."""
    count, mix = read_count(fields), Mix.of(fields, states.short_convolution(fields))
    if fields.has("layer_types"):
        fields.ignore("full_attn_idxs")
        return listed_layers(fields, "layer_types", mix)
    chosen = fields.items("full_attn_idxs")
    return periodic_layers(count, chosen.__contains__, "full_attn_idxs", mix)


def lightning_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """MiniMax-Text-01: lightning attention (0 in attn_type_list), softmax attention (1)."""
    count, mix = read_count(fields), Mix.of(fields, states.lightning_attention(fields))
    if fields.has("layer_types"):
        return listed_layers(fields, "layer_types", mix)
    turns = fields.wholes("attn_type_list", count, 0, 1)
    return periodic_layers(count, lambda i: turns[i] == 1, "attn_type_list", mix)


def recurrent_gemma_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """RecurrentGemma: block_types repeated; its attention slides."""
    count, heads = read_count(fields), read_heads(fields)
    window = fields.whole("attention_window_size", high=MOST_TOKENS)
    attention = replace(heads.full(), kind="window", limit=window)
    mix = Mix(attention, heads.rule, states.gated_recurrence(fields))
    cycle = fields.items("block_types")
    fields.ignore("_block_types")  # the same again
    if not cycle or any(name not in ("recurrent", "attention") for name in cycle):
        raise MemoryPlanError(f"{fields.name('block_types')} must be of recurrent and attention")
    return periodic_layers(
        count, lambda i: cycle[i % len(cycle)] == "attention", "block_types", mix
    )
