"""The way on when a config.json is refused: its layers, given by hand.

    {"layer_plan": [{"kind": "full", "count": 12, "heads": 8, "head_dim": 64},
                    {"kind": "window", "count": 12, "heads": 8, "head_dim": 64, "limit": 128}]}

Knows the kinds of layers.py and the keys of each; v_head_dim is head_dim unless given.
"""

from collections.abc import Iterator, Mapping

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, Fields, shown
from tinyllm.memory.layers import Attention, Index, Latent, Layer, Placed, State

_MOST_ELEMENTS = 2**40
_KINDS = ("full", "window", "chunk", "cross", "latent", "index", "state")


def manual_layers(fields: Fields) -> Iterator[Placed]:
    """Layers in the order of the list."""
    index = 0
    for number, value in enumerate(fields.items("layer_plan")):
        path = f"{fields.name('layer_plan')}[{number}]"
        if not isinstance(value, Mapping):
            raise MemoryPlanError(f"{path} must be an object, not {shown(value)}")
        row = Fields(value, f"{path}.")
        count, layer = row.whole("count", high=MOST_LAYERS), _layer(row)
        unread = [key for key in value if key not in row.read]
        if unread:
            raise MemoryPlanError(f"{row.name(str(unread[0]))} is not a key of kind {layer.kind!r}")
        for _ in range(count):
            yield Placed(index, layer, "layer_plan")
            index += 1


def _layer(row: Fields) -> Layer:
    """One row of the plan as a layer."""
    kind = row.text("kind")
    if kind in ("full", "window", "chunk", "cross"):
        heads, key_dim = row.whole("heads", high=MOST_HEADS), row.whole("head_dim")
        value_dim = row.whole("v_head_dim", default=key_dim)
        if kind == "full":
            return Attention("full", heads, key_dim, value_dim)
        limit = row.whole("limit", high=MOST_TOKENS)
        if kind == "window":
            return Attention("window", heads, key_dim, value_dim, limit)
        if kind == "chunk":
            return Attention("chunk", heads, key_dim, value_dim, limit)
        return Attention("cross", heads, key_dim, value_dim, limit)
    if kind == "latent":
        return Latent(row.whole("kv_lora_rank"), row.whole("qk_rope_head_dim", low=0))
    if kind == "index":
        return Index(row.whole("head_dim"))
    if kind == "state":
        convolution = row.whole("conv_elements", low=0, high=_MOST_ELEMENTS, default=0)
        recurrent = row.whole("recurrent_elements", low=0, high=_MOST_ELEMENTS)
        size = row.whole("recurrent_bytes", high=8, default=2)
        return State("given by hand", 1, convolution, recurrent, size)
    raise MemoryPlanError(f"{row.name('kind')} must be one of {', '.join(_KINDS)}, not {kind!r}")
