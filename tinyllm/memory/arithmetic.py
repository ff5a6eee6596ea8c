"""The formula of each kind of layer with a model's own numbers in it, and what it comes to.

One line for each entry of a plan: layers x what a token leaves x tokens kept x requests. On one of
several tensor-parallel GPUs the heads are those of that GPU.
"""

from dataclasses import dataclass

from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.dtypes import CacheType, CacheTypes
from tinyllm.memory.engines.shards import heads_per_gpu
from tinyllm.memory.layers import Attention, Compressed, Index, Latent, Layer, State
from tinyllm.memory.placement import on_one_gpu


@dataclass(frozen=True, slots=True)
class Term:
    """One entry's part of the logical bytes."""

    kind: str
    layers: int
    formula: str
    bytes: int
    rule: str  # where its numbers came from


def terms(
    plan: CachePlan, tokens: int, sequences: int, types: CacheTypes, ranks: int = 1
) -> tuple[Term, ...]:
    """Every entry of the plan; the bytes are of all sequences together."""
    rows = []
    for entry in plan.entries:
        size = entry.count * sequences * on_one_gpu(entry.layer, types, ranks, tokens)
        inner = _of_layer(entry.layer, tokens, types, ranks)
        formula = f"{entry.count:,} layers × {inner}"
        if sequences != 1:
            formula += f" × {sequences:,} requests"
        rows.append(Term(entry.kind, entry.count, formula, size, entry.rule))
    return tuple(rows)


def _of_layer(layer: Layer, tokens: int, types: CacheTypes, ranks: int) -> str:
    """What one layer keeps of one sequence."""
    if isinstance(layer, Attention):
        heads = heads_per_gpu(layer.heads, ranks)
        return f"{_rows(layer, types, heads)} × {_kept(layer, tokens)}"
    if isinstance(layer, Latent):
        row, width = layer.row_bytes(types), layer.latent_dim + layer.rope_dim
        each = f"({layer.latent_dim} + {layer.rope_dim}) × {_size(types.key)} B"
        exact = _is_plain(types.key) and row == width * types.key.block_bytes
        return f"{each if exact else f'{row:,} B'} × {tokens:,} tokens"
    if isinstance(layer, Index):
        row = types.key.index_bytes(layer.dim)
        return f"{row:,} B of an index key of {layer.dim} × {tokens:,} tokens"
    if isinstance(layer, Compressed):
        near = types.key.vector_bytes(layer.dim)
        text = f"(min({tokens:,}, {layer.window:,}) rows × {near:,} B"
        if layer.ratio:
            far = f"{tokens:,} // {layer.ratio} rows × {layer.far_bytes(types):,} B"
            text += f" + {far}"
        return text + ")"
    if isinstance(layer, State):
        convolution, recurrent = layer.elements(ranks)
        return f"({convolution:,} × 2 B + {recurrent:,} × {layer.recurrent_bytes} B)"
    raise TypeError(f"no formula for {layer!r}")


def _rows(layer: Attention, types: CacheTypes, heads: int) -> str:
    """Keys and values of one token."""
    alike = types.key == types.value and _is_plain(types.key)
    if alike:
        dims = f"({layer.key_dim} + {layer.value_dim})"
        return f"{heads:,} KV heads × {dims} × {_size(types.key)} B"
    keys, values = layer.sides(types, heads)
    return f"({keys:,} B of K + {values:,} B of V in {heads:,} KV heads)"


def _is_plain(kind: CacheType) -> bool:
    """Whether every element takes whole bytes and no scale goes with it."""
    return kind.block == 1 and not kind.scale_bytes


def _size(kind: CacheType) -> int:
    return kind.block_bytes


def _kept(layer: Attention, tokens: int) -> str:
    if layer.kind == "cross":
        return f"{layer.kept(tokens):,} encoder tokens"
    if layer.limit is None:
        return f"{tokens:,} tokens"
    return f"min({tokens:,}, {layer.limit:,}) tokens"
