"""Latent attention (MLA) with or without an indexer, and DeepSeek V4's compressed attention.

A latent layer keeps one vector of kv_lora_rank + qk_rope_head_dim a token; K and V heads are made
from it. Sources: DeepSeek-V2 (arXiv 2405.04434), and DeepseekV32Config, GlmMoeDsaConfig and
DeepseekV4Config of transformers 5.24.
"""

from collections.abc import Iterator

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import MOST_LAYERS, MOST_TOKENS, Fields, shown
from tinyllm.memory.layers import Compressed, Index, Latent, Placed
from tinyllm.memory.shape import HEAD_KEYS, KV_HEAD_KEYS, read_count

# Of the query's side, of the heads made from the latent, or of which tokens are chosen.
_INERT = (
    *("q_lora_rank", "qk_nope_head_dim", "qk_head_dim", "v_head_dim", "head_dim"),
    *("index_n_heads", "index_topk", "mla_use_nope", "mla_scale_q_lora", "mla_scale_kv_lora"),
    "attention_method",
)


def has_latent(fields: Fields) -> bool:
    """Whether the config describes MLA; `use_mla: false` and a null rank say no."""
    if not fields.flag("use_mla", default=True):
        fields.ignore("kv_lora_rank", "qk_rope_head_dim", *_INERT)
        return False
    if fields.has("kv_lora_rank"):
        return True
    fields.ignore("qk_rope_head_dim", "qk_nope_head_dim", "q_lora_rank")
    return False


def read_latent(fields: Fields) -> Latent:
    """The vector that one token leaves in a latent layer."""
    fields.ignore(*HEAD_KEYS, *KV_HEAD_KEYS, *_INERT)
    return Latent(fields.whole("kv_lora_rank"), fields.whole("qk_rope_head_dim", low=0))


def latent_layers(fields: Fields, each: int = 1) -> Iterator[Placed]:
    """Every layer latent, `each` times (LongCat-Flash has two attentions a layer)."""
    count, layer = read_count(fields), read_latent(fields)
    rule = f"kv_lora_rank {layer.latent_dim} + qk_rope_head_dim {layer.rope_dim}, no separate V"
    for index in range(count):
        yield from (Placed(index, layer, rule) for _ in range(each))


def indexed_layers(fields: Fields) -> Iterator[Placed]:
    """Latent layers, and an index key in those that run an indexer of their own."""
    yield from latent_layers(fields)
    if fields.has("layer_types"):
        names = fields.names("layer_types", read_count(fields))
        if set(names) != {"indexed_attention"}:
            raise MemoryPlanError(f"{fields.name('layer_types')} must be all indexed_attention")
    owners, rule = _indexer_owners(fields, read_count(fields))
    index = Index(fields.whole("index_head_dim"))
    yield from (Placed(owner, index, rule) for owner in owners)


def _indexer_owners(fields: Fields, count: int) -> tuple[list[int], str]:
    """Layers with an indexer; the others share the choice of the one before."""
    fields.ignore("index_topk_freq", "index_skip_topk_offset", "index_topk_pattern")
    fields.ignore("index_share_for_mtp_iteration")
    if fields.has("indexer_types"):
        names = fields.names("indexer_types", count)
        if not set(names) <= {"full", "shared"}:
            raise MemoryPlanError(f"{fields.name('indexer_types')} must be of full and shared")
        return [i for i, name in enumerate(names) if name == "full"], "indexer_types full"
    pattern = fields.get("index_topk_pattern")
    if pattern is not None:
        if not isinstance(pattern, str) or len(pattern) != count or not set(pattern) <= set("FS"):
            raise MemoryPlanError(
                f"{fields.name('index_topk_pattern')} must be {count} letters F and S, "
                f"not {shown(pattern)}"
            )
        return [i for i, letter in enumerate(pattern) if letter == "F"], "index_topk_pattern F"
    period = fields.whole("index_topk_freq", high=MOST_LAYERS, default=1)
    offset = fields.whole("index_skip_topk_offset", low=0, high=MOST_LAYERS, default=2)
    owners = [i for i in range(count) if max(i - offset + 1, 0) % period == 0]
    return owners, "index_head_dim" if period == 1 else f"every {period}th layer (index_topk_freq)"


def _read_ratios(fields: Fields, count: int) -> list[int]:
    """One ratio a layer, from the published list or from transformers' names of layer types."""
    if fields.has("compress_ratios"):
        fields.ignore("layer_types", "compress_rates")
        return fields.wholes("compress_ratios", count, 0, MOST_TOKENS, spare=True)
    rates = fields.section("compress_rates")
    known = {"sliding_attention": 0}
    for name in ("compressed_sparse_attention", "heavily_compressed_attention"):
        known[name] = 0 if rates is None else rates.whole(name, high=MOST_TOKENS)
    names = fields.names("layer_types", count)
    if rates is None or not set(names) <= set(known):
        raise MemoryPlanError(
            f"{fields.name('layer_types')} must be of {', '.join(known)}, and compress_rates must "
            "say their ratios"
        )
    return [known[name] for name in names]


def compressed_layers(fields: Fields) -> Iterator[Placed]:
    """DeepSeek V4: ratio 0 is the window alone, 4 has an indexer, 128 has none."""
    ratios = _read_ratios(fields, read_count(fields))
    dim, window = fields.whole("head_dim"), fields.whole("sliding_window", high=MOST_TOKENS)
    index_dim = fields.whole("index_head_dim")
    fields.ignore(*HEAD_KEYS, "o_lora_rank", "o_groups", "qk_rope_head_dim", *_INERT)
    if fields.whole(*KV_HEAD_KEYS, default=1) != 1:
        raise MemoryPlanError(f"{fields.name('num_key_value_heads')} must be 1, one shared row")
    for index, ratio in enumerate(ratios):
        if ratio not in (0, 4, 128):
            raise MemoryPlanError(
                f"{fields.name('compress_ratios')}[{index}] must be 0, 4 or 128, not {ratio}"
            )
        layer = Compressed(dim, window, ratio, index_dim if ratio == 4 else 0)
        yield Placed(index, layer, f"compress_ratios {ratio}, sliding_window {window}")
