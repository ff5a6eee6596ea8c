"""Attention of new tokens over what a cache gives back, for one row and for many.

Queries come scaled by 1 / sqrt(D) and turned to their positions, as keys are. The softmax is
normalised after the product with the values; the plain form is in experiments/reference.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tinyllm.errors import SettingError
from tinyllm.layers import FEW_ROWS, Array

# Between these a sum of exponentials is right to rounding in float32, and in float64.
_LEAST_SUM, _LARGEST_SUM = 1e-20, 1e30

# A few rows attend to many positions by blocks of so many of them.
MANY_POSITIONS, _POSITIONS = 1024, 256

# Prefill attends by blocks of this many queries, so that keys after a block are never touched.
_QUERY_BLOCK = 64
LARGEST_TREE = _QUERY_BLOCK  # tokens


def positions_of(start: int, n_new: int, tree: "Tree | None") -> slice | NDArray[np.intp]:
    """Where in the text n_new tokens behind `start` cached ones stand."""
    return slice(start, start + n_new) if tree is None else start + tree.depths


def attend_row(queries: Array, keys: Array, values: Array, ones: Array) -> Array:
    """Attention of one new token, which may see every cached position: no mask.

    queries (H, D) already scaled, keys (G, D, S), values (G, S, D) -> (C,).
    The softmax is normalised after the product with the values, on D numbers instead of S.
    """
    n_kv_head, head_dim, n_positions = keys.shape
    grouped = queries.reshape(n_kv_head, -1, head_dim)
    short = n_positions < MANY_POSITIONS  # the usual case pays for no more than this question
    scores = grouped @ keys if short else _scores(grouped, keys)  # (G, H/G, S)
    weights, total = exponentials(
        scores.reshape(-1, n_positions), ones[:n_positions]
    )  # (H, S), (H,)
    weights = weights.reshape(n_kv_head, -1, n_positions)
    mixed = weights @ values if short else _mixed(weights, values)  # (G, H/G, D)
    mixed = mixed.reshape(-1, head_dim)
    mixed /= total[:, None]
    return mixed.reshape(-1)


@dataclass(frozen=True, slots=True)
class Tree:
    """T new tokens that do not follow each other: each continues one of those before it.

    depths (T,) are positions behind the cached ones, the root's is 0. mask (T, T) holds 0 where
    a row sees a column, its ancestors and itself, and -inf elsewhere.
    """

    depths: NDArray[np.intp]
    mask: Array

    @classmethod
    def of(cls, parents: Sequence[int]) -> "Tree":
        """From the index of each token's parent, which stands before it; the root's is -1."""
        n_rows = len(parents)
        if n_rows > LARGEST_TREE or any(not -1 <= p < i for i, p in enumerate(parents)):
            raise SettingError(
                f"a tree has at most {LARGEST_TREE} tokens, each after its parent, not {parents}"
            )
        sees = np.eye(n_rows, dtype=bool)
        for row, parent in enumerate(parents):
            if parent >= 0:
                sees[row] |= sees[parent]
        depths = sees.sum(axis=1) - 1
        return cls(depths, np.where(sees, 0.0, -np.inf).astype(np.float32))

    def check(self, n_new: int, rows: int, call_ends: int | None) -> None:
        """SettingError unless a call of n_new tokens has one, and a row of logits, a node."""
        if not n_new == rows == len(self.depths) or call_ends is not None:
            raise SettingError(
                f"a tree of {len(self.depths)} nodes needs as many tokens and rows, not {n_new} "
                f"and {rows}, and a cache whose keys have no scales by channel"
            )


def attend_rows(
    queries: Array, keys: Array, values: Array, ones: Array, tree: Tree | None = None
) -> Array:
    """Attention of T new tokens, the last T of S positions, each blind to later ones.

    queries (T, H, D) already scaled, keys (G, D, S), values (G, S, D) -> (T, C). In a tree each
    sees its ancestors and itself.
    """
    n_rows = len(queries)
    if n_rows <= _QUERY_BLOCK:
        mask = causal_mask(n_rows, queries.dtype) if tree is None else tree.mask
        return _attend_block(queries, keys, values, ones, mask)
    start = keys.shape[2] - n_rows
    blocks = []
    for first in range(0, n_rows, _QUERY_BLOCK):
        block = queries[first : first + _QUERY_BLOCK]
        stop = start + first + len(block)
        mask = causal_mask(len(block), queries.dtype)
        blocks.append(_attend_block(block, keys[:, :, :stop], values[:, :stop], ones, mask))
    return np.concatenate(blocks)


def _attend_block(queries: Array, keys: Array, values: Array, ones: Array, mask: Array) -> Array:
    """attend_rows for queries (T, H, D) that see all S positions but where the mask (T, T) of
    the last T is -inf."""
    n_rows, n_head, head_dim = queries.shape
    n_kv_head, _, n_positions = keys.shape
    # (T, H, D) -> (G, H/G * T, D): the query heads of one KV head share one product.
    grouped = queries.transpose(1, 0, 2).reshape(n_kv_head, -1, head_dim)
    scores = _scores(grouped, keys).reshape(n_head, n_rows, n_positions)
    # Only the last T columns hold positions that some row must not see.
    scores[:, :, n_positions - n_rows :] += mask
    weights, total = exponentials(
        scores.reshape(-1, n_positions), ones[:n_positions]
    )  # (H T, S), (H T,)
    mixed = _mixed(weights.reshape(n_kv_head, -1, n_positions), values)  # (G, H/G * T, D)
    mixed = mixed.reshape(-1, head_dim)
    mixed /= total[:, None]
    return mixed.reshape(n_head, n_rows, head_dim).transpose(1, 0, 2).reshape(n_rows, -1)


def _scores(queries: Array, keys: Array) -> Array:
    """(G, R, D) @ (G, D, S) -> (G, R, S), for a few rows and many positions by blocks of them.

    As in Weight: BLAS packs what it multiplies a few rows with, here a block that fits in L2.
    """
    n_rows, n_positions = queries.shape[1], keys.shape[2]
    whole = _whole_blocks(n_rows, n_positions)
    if not whole:
        return queries @ keys
    n_kv_head, head_dim, _ = keys.shape
    blocks = keys[:, :, :whole].reshape(n_kv_head, head_dim, -1, _POSITIONS).swapaxes(1, 2)
    scores = (queries[:, None] @ blocks).swapaxes(1, 2).reshape(n_kv_head, n_rows, whole)
    if whole == n_positions:
        return scores
    return np.concatenate([scores, queries @ keys[:, :, whole:]], axis=2)


def _mixed(weights: Array, values: Array) -> Array:
    """(G, R, S) @ (G, S, D) -> (G, R, D), for a few rows and many positions by blocks of them."""
    n_kv_head, n_rows, n_positions = weights.shape
    whole = _whole_blocks(n_rows, n_positions)
    if not whole:
        return weights @ values
    rows = weights[:, :, :whole].reshape(n_kv_head, n_rows, -1, _POSITIONS).swapaxes(1, 2)
    blocks = values[:, :whole].reshape(n_kv_head, -1, _POSITIONS, values.shape[2])
    mixed: Array = (rows @ blocks).sum(axis=1)
    if whole < n_positions:
        mixed += weights[:, :, whole:] @ values[:, whole:]
    return mixed


def _whole_blocks(n_rows: int, n_positions: int) -> int:
    """The positions that are treated by blocks; 0 where that would not pay."""
    if not 1 < n_rows <= FEW_ROWS or n_positions < MANY_POSITIONS:
        return 0
    return n_positions - n_positions % _POSITIONS


def exponentials(scores: Array, ones: Array) -> tuple[Array, Array]:
    """(rows, S), ones (S,) -> exp(scores), its sums (rows,): a softmax before its division.

    The usual shift by the largest score only keeps the sums in range, at the price of two
    more passes; so it is made when a sum has left the range, and else saved. In range, no
    term that counts can have under- or overflowed. Call it under errstate(over="ignore").
    """
    weights = np.exp(scores)
    total = weights.dot(ones)
    # A step has a few sums, for which this loop takes less time than min() and max() of them.
    for row_sum in total.tolist():
        if not _LEAST_SUM < row_sum < _LARGEST_SUM:
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            return weights, weights.dot(ones)
    return weights, total


@lru_cache(maxsize=2 * _QUERY_BLOCK)
def causal_mask(n_rows: int, dtype: np.dtype) -> Array:
    """(T, T): 0 where row i may see column j <= i, -inf elsewhere; read-only."""
    mask = np.triu(np.full((n_rows, n_rows), -np.inf, dtype), 1)
    mask.setflags(write=False)
    return mask
