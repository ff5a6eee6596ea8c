"""How many layers, KV heads and dimensions a config.json gives, under all the names in use.

Covers the modern keys, GPT-2's, Falcon's, ChatGLM's, MPT's and DBRX's; which layers slide or keep
nothing is said elsewhere. Sources: the configuration classes of transformers 5.24 and the
configuration files that older models ship themselves.
"""

from dataclasses import dataclass

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import MOST_HEADS, MOST_LAYERS, MOST_WIDTH, Fields
from tinyllm.memory.layers import Attention

LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers")
HEAD_KEYS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
KV_HEAD_KEYS = (
    *("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "kv_n_heads"),
    "num_attention_groups",  # Step 3
)
MULTI_QUERY = {"falcon", "gpt_bigcode"}  # their classes default to one KV head
WIDTH_KEYS = ("hidden_size", "n_embd", "n_embed", "d_model", "model_dim")
DIM_KEYS = ("head_dim", "attention_head_dim", "kv_channels", "d_kv", "head_size", "dim_head")


@dataclass(frozen=True, slots=True)
class Heads:
    """KV heads of a layer and their dimensions, with where the numbers came from."""

    count: int
    key_dim: int
    value_dim: int
    rule: str

    def full(self) -> Attention:
        """A layer that keeps every token."""
        return Attention("full", self.count, self.key_dim, self.value_dim)


def read_count(fields: Fields) -> int:
    """Number of layers."""
    return fields.whole(*LAYER_KEYS, high=MOST_LAYERS)


def read_heads(fields: Fields) -> Heads:
    """KV heads and head dimensions of the ordinary attention layers."""
    attention = fields.section("attn_config")  # MPT and DBRX put the KV heads in an object
    source = attention if attention is not None and attention.has("kv_n_heads") else fields
    one = attention is not None and attention.text("attn_type") == "multiquery_attention"
    query_heads = fields.whole(*HEAD_KEYS, high=MOST_HEADS)
    count, rule = _read_kv_heads(fields, source, query_heads)
    if one:  # MPT
        count, rule = 1, "1 KV head (attn_type)"
    if query_heads % count:
        raise MemoryPlanError(
            f"{source.name('num_key_value_heads')} ({count}) must divide the {query_heads} "
            "attention heads, as every KV head serves the same number of them"
        )
    key_dim, origin = read_key_dim(fields, query_heads)
    # DeepSeek-VL2 writes 0 for the dimensions of an MLA that it does not use.
    same = fields.get("v_head_dim") in (None, 0)
    value_dim = key_dim if same else fields.whole("v_head_dim")
    return Heads(count, key_dim, value_dim, f"{rule}, {origin}")


def _read_kv_heads(fields: Fields, source: Fields, query_heads: int) -> tuple[int, str]:
    """KV heads; `source` is where their key may stand."""
    family = fields.text("model_type")
    if family in MULTI_QUERY and fields.absent("multi_query"):
        raise MemoryPlanError(f"{fields.name('multi_query')} is missing: true or false")
    if fields.flag("multi_query") and not fields.flag("new_decoder_architecture"):
        fields.ignore(*KV_HEAD_KEYS)  # Falcon-7B writes num_kv_heads 71 beside multi_query
        return 1, "1 KV head (multi_query)"
    if fields.flag("multi_query_attention"):
        if not fields.has("multi_query_group_num"):  # OLMo's and Molmo's own code
            fields.ignore(*KV_HEAD_KEYS)
            return 1, "1 KV head (multi_query_attention)"
        groups = fields.whole("multi_query_group_num", high=MOST_HEADS)  # ChatGLM
        return groups, f"{groups} KV heads (multi_query_group_num)"
    fields.ignore("multi_query_group_num")
    for key in KV_HEAD_KEYS:
        if source.has(key):
            count = source.whole(key, high=query_heads)
            fields.ignore(*KV_HEAD_KEYS)
            return count, f"{count} KV heads ({key})"
    return query_heads, f"{query_heads} KV heads (as many as attention heads)"


def read_key_dim(fields: Fields, query_heads: int) -> tuple[int, str]:
    """Dimensions of one key and their origin."""
    given = [key for key in DIM_KEYS if fields.has(key)]
    sizes = {fields.whole(key) for key in given}
    if len(sizes) > 1:
        raise MemoryPlanError(
            f"{' and '.join(fields.name(key) for key in given)} contradict each other"
        )
    if sizes:
        return sizes.pop(), f"{given[0]} {fields.get(given[0])}"
    width = fields.whole(*WIDTH_KEYS, high=MOST_WIDTH)
    if width % query_heads:
        raise MemoryPlanError(
            f"{fields.name('head_dim')} is missing, and the width {width:,} is not a multiple of "
            f"the {query_heads} attention heads: give head_dim"
        )
    return width // query_heads, f"head_dim {width // query_heads} (width / heads)"
