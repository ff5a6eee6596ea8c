"""Trained weights -> the folded weights that the engine multiplies with.

Layer norm takes off the mean, divides by the deviation, multiplies by a gain and adds a bias; an
rms norm only divides and multiplies. All but the division is linear, so it can be done once, in
the neighbouring weights: under layer norm embeddings and residual outputs are centred, so that
every row of the residual stream has zero mean; the gain scales the rows of the product that
follows; biases are one more row of it. So every family becomes the same blocks: divide by the
root mean square, multiply, attend, multiply. The stored files keep their family's form; nothing
outside tinyllm/model.py sees the folded one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tinyllm.arena import Arena
from tinyllm.config import ModelConfig
from tinyllm.layers import GELU_SCALE, GELU_UNSCALE, SILU_SCALE, Array, Weight
from tinyllm.stored import Linear, Norm, StoredBlock, stored_block, stored_ends

_ROWS_AT_ONCE = 1024  # of a table: what is float64 in between stays small


@dataclass(frozen=True, slots=True)
class FoldedBlock:
    """One layer. The weights are (in, out) and C-contiguous; a last row of `in` is a bias.
    `centred` means under layer norm: an rms norm takes no mean off.

    `down` alone is F-contiguous: with several times more in than out, sums along columns that lie
    in order are faster for one token, as fast for many, and rounded less.
    """

    qkv: Weight  # (C + 1, (H + 2G) D), query columns divided by sqrt(D)
    head_gains: Array | None  # (H + G, D), of the norm on queries and keys, see place_heads
    attention_out: Weight  # (H D, C), centred
    attention_bias: Array | None  # (C,), centred
    up: Weight  # (C + 1, F) times GELU_SCALE, or (C + 1, 2 F), the gate's half times SILU_SCALE
    down: Weight  # (F, C), centred, times GELU_UNSCALE after GELU
    down_bias: Array | None  # (C,), centred


@dataclass(frozen=True, slots=True)
class FoldedWeights:
    """The whole model. A row of the residual stream has C + 1 places, see normalise_row."""

    token_embedding: Array  # (V, C + 1), centred, 0 in the last place
    # (context, C + 1), centred, sqrt(C eps) in the last place; 0 before it for rotary positions
    position_embedding: Array
    blocks: tuple[FoldedBlock, ...]  # L of them
    head: Weight  # (C + 1, V)


def fold(
    weights: Mapping[str, Array], config: ModelConfig, dtype: np.dtype, chunk_columns: int
) -> FoldedWeights:
    """All of a model at once: the last of what folding() yields."""
    *_, folded = folding(weights, config, dtype, chunk_columns)
    assert isinstance(folded, FoldedWeights)
    return folded


def folding(
    weights: Mapping[str, Array], config: ModelConfig, dtype: np.dtype, chunk_columns: int
) -> Iterator[FoldedBlock | FoldedWeights]:
    """The layers as they are folded, then the whole. The arrays are read-only: sessions share them.

    Computes in float64 and rounds once to dtype. Each stored weight is asked for when its turn
    comes and let go, so a mapping that reads from disk needs no second copy of the model.
    """
    work = _Folder(config, dtype, chunk_columns)
    ends = stored_ends(weights, config)
    tokens = work.table(ends.token_embedding, last=0.0)
    eps = (config.width * config.norm_eps) ** 0.5
    if ends.position_embedding is None:
        only = np.append(np.zeros(config.width, dtype), dtype.type(eps))
        positions = np.broadcast_to(only, (config.context_length, len(only)))
    else:
        positions = work.table(ends.position_embedding, last=eps)
    head = work.after_norm(ends.norm, [Linear(ends.head.T, None)])
    del ends
    blocks = []
    for layer in range(config.n_layer):
        blocks.append(work.block(stored_block(weights, config, layer)))
        yield blocks[-1]
    yield FoldedWeights(tokens, positions, tuple(blocks), head)


def folded_bytes(config: ModelConfig, dtype: np.dtype, chunk_columns: int) -> int:
    """Bytes that the folded weights take, chunks included, to a thousandth: gains are left out."""
    width, hidden = config.width + 1, config.hidden_width
    q_width = config.n_head * config.head_dim
    qkv_width = q_width + 2 * config.n_kv_head * config.head_dim
    up_width = hidden if config.activation == "gelu" else 2 * hidden
    copies = 2 if chunk_columns else 1  # of all but `down`, whose chunks are views
    block = copies * (width * (qkv_width + up_width) + q_width * config.width)
    block += hidden * config.width
    tables = config.vocab_size + (config.context_length if config.positions == "learned" else 0)
    head = copies * width * config.vocab_size
    return dtype.itemsize * (tables * width + config.n_layer * block + head)


class _Folder:
    """How the parts of one model are folded."""

    def __init__(self, config: ModelConfig, dtype: np.dtype, chunk_columns: int) -> None:
        self._config = config
        self._dtype = dtype
        self._chunk_columns = chunk_columns
        self._layer_norm = config.norm == "layer"
        self._arena = Arena(folded_bytes(config, dtype, chunk_columns))

    def block(self, stored: StoredBlock) -> FoldedBlock:
        """One layer."""
        size = self._config.head_dim
        gated = self._config.activation == "swiglu"
        # With a norm on each query, its gain is the last factor that can take the 1 / sqrt(D).
        query_scale = 1.0 if self._config.qk_norm else size**-0.5
        products = [self._paired(stored.query), self._paired(stored.key), stored.value]
        return FoldedBlock(
            qkv=self.after_norm(stored.attention_norm, products, [query_scale, 1.0, 1.0]),
            head_gains=self._head_gains(stored),
            attention_out=self._after(stored.attention_out.matrix, "C"),
            attention_bias=self._bias(stored.attention_out.bias),
            up=self.after_norm(
                stored.mlp_norm, stored.up, [SILU_SCALE, 1.0] if gated else [GELU_SCALE]
            ),
            down=self._after(stored.down.matrix, "F", 1.0 if gated else GELU_UNSCALE),
            down_bias=self._bias(stored.down.bias),
        )

    def after_norm(
        self, norm: Norm, products: Sequence[Linear], scales: Sequence[float] = (1.0,)
    ) -> Weight:
        """(C, out) products side by side, each times its scale, with the norm before them: gain
        on the rows, biases as one more row."""
        width = self._config.width
        n_out = sum(product.matrix.shape[1] for product in products)
        whole = self._arena.empty((width + 1, n_out), self._dtype)
        whole[-1] = 0
        # A row's length over its root mean square is sqrt(C).
        gain = width**0.5 * norm.gain.astype(np.float64)[:, None]
        first = 0
        for (matrix, bias), scale in zip(products, scales, strict=True):
            for start in range(0, matrix.shape[1], _ROWS_AT_ONCE):
                part = matrix[:, start : start + _ROWS_AT_ONCE]
                columns = whole[:, first + start : first + start + part.shape[1]]
                columns[:-1] = scale * gain * part
                if norm.bias is not None:
                    columns[-1] += scale * (norm.bias.astype(np.float64) @ part)
            if bias is not None:
                whole[-1, first : first + len(bias)] += scale * bias.astype(np.float64)
            first += matrix.shape[1]
        return Weight.of(whole, self._chunk_columns, self._arena)

    def table(self, rows: Array, last: float) -> Array:
        """(n, C) embeddings -> (n, C + 1), centred, with `last` in the last place."""
        table = np.full((len(rows), rows.shape[1] + 1), last, self._dtype)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            table[start : start + len(part), :-1] = self._centred(part)
        table.setflags(write=False)
        return table

    def _after(self, matrix: Array, order: Literal["C", "F"], scale: float = 1.0) -> Weight:
        """A product whose outputs are added to the residual stream."""
        whole = self._arena.empty(matrix.shape, self._dtype, order)
        whole[...] = scale * self._centred(matrix)
        return Weight.of(whole, self._chunk_columns, self._arena)

    def _bias(self, bias: Array | None) -> Array | None:
        if bias is None:
            return None
        folded = self._centred(bias).astype(self._dtype)
        folded.setflags(write=False)
        return folded

    def _centred(self, rows: Array) -> Array:
        """Each row's mean taken off where layer norm would do so later, on every token."""
        exact = np.asarray(rows, np.float64)
        return exact - exact.mean(axis=-1, keepdims=True) if self._layer_norm else exact

    def _paired(self, product: Linear) -> Linear:
        """With the two dimensions that rotary positions turn together side by side.

        The files' dimension i goes with i + D / 2 (HF's "rotate half"); scores do not depend on
        the order of a head's dimensions, so queries and keys may both have another.
        """
        if self._config.positions == "learned":
            return product
        bias = None if product.bias is None else self._pairs(product.bias)
        return Linear(self._pairs(product.matrix), bias)

    def _pairs(self, array: Array) -> Array:
        heads = array.reshape(*array.shape[:-1], -1, 2, self._config.head_dim // 2)
        return np.asarray(heads.swapaxes(-1, -2)).reshape(array.shape)

    def _head_gains(self, stored: StoredBlock) -> Array | None:
        if stored.query_gain is None or stored.key_gain is None:
            return None
        config = self._config
        query, key = (
            self._pairs(gain.astype(np.float64)) for gain in (stored.query_gain, stored.key_gain)
        )
        # sqrt(D) as in after_norm; the queries' meets the 1 / sqrt(D) of attention.
        key = config.head_dim**0.5 * key
        gains = np.vstack([np.tile(query, (config.n_head, 1)), np.tile(key, (config.n_kv_head, 1))])
        folded = gains.astype(self._dtype)
        folded.setflags(write=False)
        return folded
