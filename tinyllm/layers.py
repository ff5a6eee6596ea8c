"""The numerics: what a block does to its rows, for one row and for many.

A row is one token's vector. Every weight here is folded (see tinyllm/folding.py): norms are a
division by the root mean square, the 1 / sqrt(D) of attention sits in the query columns and
GELU's outer constants in the products around it. Plain forms of all this are in
experiments/reference.py; tests prove both equal.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

# tanh-GELU: x/2 (1 + tanh(a x + b x^3)), Hendrycks & Gimpel 2016 with GPT-2's constants.
# With u = s x and s^3 = b it is u/(2s) (1 + tanh(u (a/s + u^2))): one product fewer per element.
GELU_ROOT, GELU_CUBIC = (2 / np.pi) ** 0.5, 0.044715  # a and b / a
GELU_SCALE = (GELU_ROOT * GELU_CUBIC) ** (1 / 3)  # s, folded into the product before
GELU_UNSCALE = 1 / (2 * GELU_SCALE)  # folded into the product after

GELU_SHIFT = GELU_ROOT / GELU_SCALE  # a / s

# Between these a sum of exponentials is right to rounding in float32, and in float64.
_LEAST_SUM, _LARGEST_SUM = 1e-20, 1e30

# A product of more rows than this is added up in parts of at most so many terms.
_FEW_ROWS, _TERMS_AT_ONCE = 16, 96

# Prefill attends by blocks of this many queries, so that keys after a block are never touched.
_QUERY_BLOCK = 64


def normalise_row(x: Array) -> Array:
    """(C + 1,) / its length, then a 1 in the last place, which meets the next product's bias.

    A row of the residual stream has zero mean and carries sqrt(C eps) in its last place, so
    that its length is sqrt(C) times what layer norm divides by; that factor is folded.
    """
    normalised: Array = x * float(x.dot(x)) ** -0.5
    normalised[-1] = 1
    return normalised


def normalise_rows(x: Array) -> Array:
    """normalise_row of each of (T, C + 1)."""
    normalised: Array = x / np.sqrt(np.vecdot(x, x))[:, None]
    normalised[:, -1] = 1
    return normalised


def product_rows(x: Array, weight: Array) -> Array:
    """(T, in) @ (in, out), for many rows as a sum of shorter products.

    BLAS adds the `in` terms of a many-row product one after the other, and rounds each time;
    for one row it adds in lanes. Short parts, added pairwise, bring prefill as near to exact
    arithmetic as decoding is, for a tenth more time.
    """
    n_in = x.shape[1]
    if len(x) <= _FEW_ROWS or n_in <= _TERMS_AT_ONCE:
        return x @ weight
    step = -(-n_in // -(-n_in // _TERMS_AT_ONCE))  # equal parts
    parts = [x[:, i : i + step] @ weight[i : i + step] for i in range(0, n_in, step)]
    while len(parts) > 1:
        paired = [np.add(a, b, a) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = paired + parts[len(paired) * 2 :]
    return parts[0]


@dataclass(frozen=True, slots=True)
class Constants:
    """Numbers as 0-d arrays of one dtype.

    numpy converts a Python number anew at each call, at the price of a pass over a short row.
    """

    one: Array
    gelu_shift: Array
    ones: Array  # (context,): a sum as a product costs half of a reduction on few numbers

    @classmethod
    def of(cls, dtype: np.dtype, context_length: int) -> "Constants":
        """The constants in a dtype."""
        return cls(
            one=np.array(1, dtype),
            gelu_shift=np.array(GELU_SHIFT, dtype),
            ones=np.ones(context_length, dtype),
        )


def scaled_gelu(u: Array, constants: Constants) -> Array:
    """GELU of u / GELU_SCALE, divided by GELU_UNSCALE; any shape, u is left as it is."""
    inner = u * u
    inner += constants.gelu_shift
    inner *= u
    np.tanh(inner, inner)
    inner += constants.one
    inner *= u
    return inner


def attend_row(queries: Array, keys: Array, values: Array, ones: Array) -> Array:
    """Attention of one new token, which may see every cached position: no mask.

    queries (H, D) already scaled, keys (G, D, S), values (G, S, D) -> (C,).
    The softmax is normalised after the product with the values, on D numbers instead of S.
    """
    n_kv_head, head_dim, n_positions = keys.shape
    scores = queries.reshape(n_kv_head, -1, head_dim) @ keys  # (G, H/G, S)
    weights, total = exponentials(
        scores.reshape(-1, n_positions), ones[:n_positions]
    )  # (H, S), (H,)
    mixed = weights.reshape(n_kv_head, -1, n_positions) @ values  # (G, H/G, D)
    return (mixed.reshape(-1, head_dim) / total[:, None]).reshape(-1)


def attend_rows(queries: Array, keys: Array, values: Array, ones: Array) -> Array:
    """Attention of T new tokens, the last T of S positions, each blind to later ones.

    queries (T, H, D) already scaled, keys (G, D, S), values (G, S, D) -> (T, C).
    """
    n_rows = len(queries)
    if n_rows <= _QUERY_BLOCK:
        return _attend_block(queries, keys, values, ones)
    start = keys.shape[2] - n_rows
    blocks = []
    for first in range(0, n_rows, _QUERY_BLOCK):
        block = queries[first : first + _QUERY_BLOCK]
        stop = start + first + len(block)
        blocks.append(_attend_block(block, keys[:, :, :stop], values[:, :stop], ones))
    return np.concatenate(blocks)


def _attend_block(queries: Array, keys: Array, values: Array, ones: Array) -> Array:
    """attend_rows for queries (T, H, D) that see all S positions but the mask's corner."""
    n_rows, n_head, head_dim = queries.shape
    n_kv_head, _, n_positions = keys.shape
    # (T, H, D) -> (G, H/G * T, D): the query heads of one KV head share one product.
    grouped = queries.transpose(1, 0, 2).reshape(n_kv_head, -1, head_dim)
    scores = (grouped @ keys).reshape(n_head, n_rows, n_positions)
    # Only the last T columns hold positions that some row must not see.
    scores[:, :, n_positions - n_rows :] += causal_mask(n_rows, scores.dtype)
    weights, total = exponentials(
        scores.reshape(-1, n_positions), ones[:n_positions]
    )  # (H T, S), (H T,)
    mixed = weights.reshape(n_kv_head, -1, n_positions) @ values  # (G, H/G * T, D)
    mixed = mixed.reshape(-1, head_dim) / total[:, None]
    return mixed.reshape(n_head, n_rows, head_dim).transpose(1, 0, 2).reshape(n_rows, -1)


def exponentials(scores: Array, ones: Array) -> tuple[Array, Array]:
    """(rows, S), ones (S,) -> exp(scores), its sums (rows,): a softmax before its division.

    The usual shift by the largest score only keeps the sums in range, at the price of two
    more passes; so it is made when a sum has left the range, and else saved. In range, no
    term that counts can have under- or overflowed. Call it under errstate(over="ignore").
    """
    weights = np.exp(scores)
    total = weights.dot(ones)
    totals = total.tolist()
    if not (min(totals) > _LEAST_SUM and max(totals) < _LARGEST_SUM):
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        total = weights.dot(ones)
    return weights, total


@lru_cache(maxsize=2 * _QUERY_BLOCK)
def causal_mask(n_rows: int, dtype: np.dtype) -> Array:
    """(T, T): 0 where row i may see column j <= i, -inf elsewhere; read-only."""
    mask = np.triu(np.full((n_rows, n_rows), -np.inf, dtype), 1)
    mask.setflags(write=False)
    return mask
