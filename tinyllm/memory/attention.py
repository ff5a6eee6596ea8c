"""Models whose layers are all attention: plain, windowed, chunked, shared, or of differing heads.

One reader per family of keys; each yields what every layer keeps, with the rule it follows. Layers
that borrow the keys and values of another yield nothing.
"""

from collections.abc import Iterator

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import MOST_HEADS, MOST_TOKENS, MOST_WIDTH, Fields, shown
from tinyllm.memory.layers import Attention, Index, Placed
from tinyllm.memory.shape import HEAD_KEYS, WIDTH_KEYS, Heads, read_count, read_heads, read_key_dim
from tinyllm.memory.windows import Spans, read_spans

_OWN_KEYS = {"head_dim", "num_key_value_heads"}


def plain_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """The same heads in every layer, over spans that the family or the config decides."""
    count, heads = read_count(fields), read_heads(fields)
    if family == "laguna":  # its query heads differ by layer, its KV heads do not
        fields.ignore("num_attention_heads_per_layer")
    spans = read_spans(fields, family, count)
    holders, shared = _holders(fields, count)
    for index in holders:
        yield _placed(index, spans, heads, shared)


def _placed(index: int, spans: Spans, heads: Heads, note: str = "") -> Placed:
    layer = spans.layer(index, heads.full())
    return Placed(index, layer, f"{heads.rule}; {spans.rule}{note}")


def _holders(fields: Fields, count: int) -> tuple[range, str]:
    """Layers with a cache of their own, and a note when there are others."""
    if fields.flag("use_cla"):  # Hunyuan: the first of each cla_share_factor layers
        factor = fields.whole("cla_share_factor", high=count)
        return range(0, count, factor), f"; one layer in {factor} holds KV (use_cla)"
    fields.ignore("cla_share_factor")
    return range(count), ""


def gemma_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Gemma 3n and 4: the last layers share, and Gemma 4's full layers have heads of their own."""
    count, heads = read_count(fields), read_heads(fields)
    spans = read_spans(fields, family, count)
    none = 0 if family.startswith("gemma4") else None  # Gemma3nTextConfig shares by default
    shared = fields.whole("num_kv_shared_layers", low=0, high=count - 1, default=none)
    note = f"; the last {shared} layers share (num_kv_shared_layers)" if shared else ""
    wide, own = heads, {}
    if family.startswith("gemma4"):
        own = _heads_of_layers(fields, heads)
        wide = _gemma_4_full(fields, heads) if not own else heads
    for index in range(count - shared):
        usual = wide if spans.letters[index] == "F" else heads
        yield _placed(index, spans, own.get(index, usual), note)


def _heads_of_layers(fields: Fields, heads: Heads) -> dict[int, Heads]:
    """Layers with heads of their own, as transformers 5.24 writes them: {"05": {...}}."""
    rows, found = fields.section("per_layer_config"), {}
    for key in () if rows is None else rows.values:
        row = rows.section(key) if rows is not None else None
        if row is None or not key.isdecimal() or set(row.values) - _OWN_KEYS:
            raise MemoryPlanError(
                f"{fields.name('per_layer_config')}[{key!r}] must be a layer's number, with "
                f"{' and '.join(sorted(_OWN_KEYS))} alone"
            )
        dim = row.whole("head_dim", default=heads.key_dim)
        count = row.whole("num_key_value_heads", high=MOST_HEADS, default=heads.count)
        rule = f"{count} KV heads, head_dim {dim} (per_layer_config)"
        found[int(key)] = Heads(count, dim, dim, rule)
    return found


def _gemma_4_full(fields: Fields, heads: Heads) -> Heads:
    """Heads of the full layers, whose count Gemma4TextConfig gates by attention_k_eq_v."""
    dim = fields.whole("global_head_dim", default=512)
    count = heads.count
    has_own = fields.has("num_global_key_value_heads")
    if fields.flag("attention_k_eq_v") and has_own:
        count = fields.whole("num_global_key_value_heads", high=MOST_HEADS)
    return Heads(count, dim, dim, f"{count} KV heads in full layers, global_head_dim {dim}")


def mimo_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """MiMo-V2: windowed layers (1 in hybrid_layer_pattern) with heads of their own."""
    count, heads = read_count(fields), read_heads(fields)
    window = fields.whole("sliding_window", "sliding_window_size", high=MOST_TOKENS)
    slides = fields.wholes("hybrid_layer_pattern", count, 0, 1)
    narrow = Attention(
        "window",
        fields.whole("swa_num_key_value_heads", default=heads.count, high=MOST_HEADS),
        fields.whole("swa_head_dim", default=heads.key_dim),
        fields.whole("swa_v_head_dim", "swa_head_dim", default=heads.value_dim),
        window,
    )
    # The window decides; the chunk is a left-over that no engine reads.
    fields.ignore("sliding_window_size", "swa_num_attention_heads", "attention_chunk_size")
    for index, slide in enumerate(slides):
        rule = "hybrid_layer_pattern 1, swa_ keys" if slide else "hybrid_layer_pattern 0"
        yield Placed(index, narrow if slide else heads.full(), f"{rule}; {heads.rule}")


def step_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Step 3.5: KV heads are called attention groups, and sliding layers may have other ones."""
    count = read_count(fields)
    query_heads = fields.whole(*HEAD_KEYS, high=MOST_HEADS)
    groups = fields.whole("num_attention_groups", "num_key_value_heads", high=query_heads)
    fields.ignore("num_sliding_attention_heads")
    dim, origin = read_key_dim(fields, query_heads)
    window = fields.whole("sliding_window", high=MOST_TOKENS)
    other = fields.section("attention_other_setting")
    narrow = Attention("window", groups, dim, dim, window)
    if other is not None:
        narrow_groups = other.whole("num_attention_groups", high=MOST_HEADS, default=groups)
        narrow_dim = other.whole("head_dim", default=dim)
        narrow = Attention("window", narrow_groups, narrow_dim, narrow_dim, window)
    kinds = {"full_attention": Attention("full", groups, dim, dim), "sliding_attention": narrow}
    for index, name in enumerate(fields.names("layer_types", count, spare=True)):
        yield Placed(index, _of(kinds, name, fields, index), f"layer_types; {origin}")


def _of(kinds: dict[str, Attention], name: str, fields: Fields, index: int) -> Attention:
    if name in kinds:
        return kinds[name]
    known = " or ".join(kinds)
    raise MemoryPlanError(f"{fields.name('layer_types')}[{index}] must be {known}, not {name!r}")


def openelm_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """OpenELM: a list of KV heads, one number a layer."""
    count = read_count(fields)
    heads = fields.wholes("num_kv_heads", count, 1, MOST_HEADS)
    dim = fields.whole("head_dim")
    fields.ignore("num_query_heads", *WIDTH_KEYS)
    for index, number in enumerate(heads):
        yield Placed(index, Attention("full", number, dim, dim), "num_kv_heads list")


def deci_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """DeciLM-7B: a list of KV heads under another name."""
    count = read_count(fields)
    query_heads = fields.whole(*HEAD_KEYS, high=MOST_HEADS)
    dim, origin = read_key_dim(fields, query_heads)
    key = "num_key_value_heads_per_layer"
    fields.ignore("num_key_value_heads")
    for index, number in enumerate(fields.wholes(key, count, 1, query_heads)):
        yield Placed(index, Attention("full", number, dim, dim), f"{key}; {origin}")


def nemotron_nas_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """Llama-Nemotron: block_configs gives each layer its own heads, or no attention at all."""
    count = read_count(fields)
    query_heads = fields.whole(*HEAD_KEYS, high=MOST_HEADS)
    dim, origin = read_key_dim(fields, query_heads)
    fields.ignore("num_key_value_heads")
    for index, value in enumerate(fields.per_layer("block_configs", count)):
        path = f"{fields.name('block_configs')}[{index}]"
        if not isinstance(value, dict):
            raise MemoryPlanError(f"{path} must be an object, not {shown(value)}")
        attention = Fields(value, f"{path}.").section("attention")
        if attention is None:
            raise MemoryPlanError(f"{path}.attention is missing: an object")
        if attention.flag("no_op") or attention.flag("replace_with_linear"):
            continue
        for key in ("num_sink_tokens", "sparsify", "unshifted_sink", "window_length"):
            if attention.get(key) not in (None, False):
                raise MemoryPlanError(f"{path}.attention.{key} changes the cache in an unknown way")
        group = attention.whole("n_heads_in_group", high=query_heads)
        number = query_heads // group
        yield Placed(
            index,
            Attention("full", number, dim, dim),
            f"block_configs: {number} KV heads, {origin}",
        )


def softmax_only_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """MiniMax-M2: plain attention, beside a list of types that must all be softmax (1)."""
    if fields.has("attn_type_list"):
        fields.wholes("attn_type_list", read_count(fields), 1, 1)
    return plain_layers(fields, family)


def block_sparse_layers(fields: Fields, family: str) -> Iterator[Placed]:
    """MiniMax-M3: full KV everywhere, and one index key a token in the sparse layers."""
    yield from plain_layers(fields, family)
    sparse = fields.section("sparse_attention_config")
    if sparse is None or not sparse.flag("use_sparse_attention"):
        return
    turns = sparse.wholes("sparse_attention_freq", read_count(fields), 0, 1)
    index_key = Index(sparse.whole("sparse_index_dim", high=MOST_WIDTH))
    for index, turn in enumerate(turns):
        if turn:
            yield Placed(index, index_key, "sparse_attention_freq 1, one sparse_index_dim key")
