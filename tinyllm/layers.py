"""The numerics: what a block does to its rows, for one row and for many.

A row is one token's vector. Every weight here is folded (see tinyllm/folding.py): norms are a
division by the root mean square, the 1 / sqrt(D) of attention sits in the query columns and
GELU's outer constants in the products around it. Plain forms of all this are in
experiments/reference.py; tests prove both equal.
"""

from collections.abc import Callable
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
FEW_ROWS, _TERMS_AT_ONCE = 16, 96

# A model larger than any L2 cache is multiplied with a few rows in chunks that fit well into one.
L2_BYTES, CHUNK_BYTES = 4 * 2**20, 128 * 2**10

# A few rows attend to many positions by blocks of so many of them.
MANY_POSITIONS, _POSITIONS = 1024, 256

# Prefill attends by blocks of this many queries, so that keys after a block are never touched.
_QUERY_BLOCK = 64


def normalise_row(x: Array) -> Array:
    """(C + 1,) / its length, then a 1 in the last place, which meets the next product's bias.

    A row of the residual stream has zero mean and carries sqrt(C eps) in its last place, so
    that its length is sqrt(C) times what layer norm divides by; that factor is folded.
    """
    normalised: Array = x * x.dot(x) ** -0.5
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
    if len(x) <= FEW_ROWS or n_in <= _TERMS_AT_ONCE:
        return x @ weight
    step = -(-n_in // -(-n_in // _TERMS_AT_ONCE))  # equal parts
    parts = [x[:, i : i + step] @ weight[i : i + step] for i in range(0, n_in, step)]
    while len(parts) > 1:
        paired = [np.add(a, b, a) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = paired + parts[len(paired) * 2 :]
    return parts[0]


@dataclass(frozen=True, slots=True)
class Weight:
    """A folded (in, out) matrix and the one place that decides how rows meet it.

    One row: a matrix-vector product, which streams the matrix once. Many rows: a plain product.
    For a few rows BLAS first packs the whole matrix, which costs several reads of one that does
    not lie in the L2 cache; contiguous column chunks, multiplied as a batch, are packed and used
    while they are in it.
    """

    whole: Array  # (in, out), in whatever order one row reads fastest
    chunks: Array | None  # (n, in, out / n), a second copy; None where it would not pay
    # (in,) -> (out,); numpy's own method, bound to the matrix: a step makes dozens of these calls.
    row: Callable[[Array], Array]

    @classmethod
    def of(cls, whole: Array, chunk_bytes: int) -> "Weight":
        """With chunks of at most about chunk_bytes; 0 for none. The arrays become read-only."""
        chunks = None
        n_in, n_out = whole.shape
        widest = chunk_bytes // (whole.itemsize * n_in)
        if chunk_bytes and widest < n_out:
            width = max(width for width in range(1, max(widest, 1) + 1) if n_out % width == 0)
            chunks = np.ascontiguousarray(whole.reshape(n_in, -1, width).transpose(1, 0, 2))
            chunks.setflags(write=False)
        whole.setflags(write=False)
        return cls(whole, chunks, whole.T.dot)

    def rows(self, x: Array) -> Array:
        """(T, in) -> (T, out), by the path for T."""
        if self.chunks is None or len(x) > FEW_ROWS:
            return product_rows(x, self.whole)
        product = x @ self.chunks  # (n, T, out / n)
        return product.transpose(1, 0, 2).reshape(len(x), -1)


def chunk_bytes_for(model_bytes: int) -> int:
    """What suits a model of that size: no chunks while its weights stay in the L2 cache."""
    return CHUNK_BYTES if model_bytes > L2_BYTES else 0


def path_of(weight: Weight, n_rows: int) -> str:
    """The name of the path that a product of n_rows takes, for benches to show."""
    if n_rows == 1:
        return "one row"
    if n_rows > FEW_ROWS:
        return "many rows"
    return "few rows, whole" if weight.chunks is None else "few rows, chunks"


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
    grouped = queries.reshape(n_kv_head, -1, head_dim)
    short = n_positions < MANY_POSITIONS  # the usual case pays for no more than this question
    scores = grouped @ keys if short else _scores(grouped, keys)  # (G, H/G, S)
    weights, total = exponentials(
        scores.reshape(-1, n_positions), ones[:n_positions]
    )  # (H, S), (H,)
    weights = weights.reshape(n_kv_head, -1, n_positions)
    mixed = weights @ values if short else _mixed(weights, values)  # (G, H/G, D)
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
    scores = _scores(grouped, keys).reshape(n_head, n_rows, n_positions)
    # Only the last T columns hold positions that some row must not see.
    scores[:, :, n_positions - n_rows :] += causal_mask(n_rows, scores.dtype)
    weights, total = exponentials(
        scores.reshape(-1, n_positions), ones[:n_positions]
    )  # (H T, S), (H T,)
    mixed = _mixed(weights.reshape(n_kv_head, -1, n_positions), values)  # (G, H/G * T, D)
    mixed = mixed.reshape(-1, head_dim) / total[:, None]
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
