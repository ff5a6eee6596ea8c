"""The numerics: what a block does to its rows, for one row and for many.

A row is one token's vector. Every weight here is folded (see tinyllm/folding.py): norms are a
division by the root mean square, the 1 / sqrt(D) of attention sits in the query columns and
GELU's outer constants in the products around it. Plain forms of all this are in
experiments/reference.py; tests prove both equal.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

NORM_EPS = 1e-5

# tanh-GELU: x/2 (1 + tanh(a x + b x^3)), Hendrycks & Gimpel 2016 with GPT-2's constants.
# With u = s x and s^3 = b it is u/(2s) (1 + tanh(u (a/s + u^2))): one product fewer per element.
_GELU_A = (2 / np.pi) ** 0.5
GELU_SCALE = (_GELU_A * 0.044715) ** (1 / 3)  # s, folded into the product before
GELU_UNSCALE = 1 / (2 * GELU_SCALE)  # folded into the product after

# Constants as 0-d arrays: numpy converts a Python number anew at each call, at the price of a
# whole pass over a short row.
_SHIFT = {np.dtype(d): np.array(_GELU_A / GELU_SCALE, d) for d in ("float32", "float64")}
_ONE = {np.dtype(d): np.array(1, d) for d in ("float32", "float64")}

# Prefill attends by blocks of this many queries, so that keys after a block are never touched.
_QUERY_BLOCK = 64


def normalise_row(x: Array) -> Array:
    """(C,) / its root mean square: layer norm of a row with zero mean, gain and bias folded."""
    normalised: Array = x * (float(x.dot(x)) / len(x) + NORM_EPS) ** -0.5
    return normalised


def normalise_rows(x: Array) -> Array:
    """(T, C) / each row's root mean square."""
    mean_square = np.vecdot(x, x)
    mean_square /= x.shape[1]
    mean_square += NORM_EPS
    normalised: Array = x / np.sqrt(mean_square, out=mean_square)[:, None]
    return normalised


def scaled_gelu(u: Array) -> Array:
    """GELU of u / GELU_SCALE, divided by GELU_UNSCALE; any shape, u is left as it is."""
    inner = u * u
    inner += _SHIFT[u.dtype]
    inner *= u
    np.tanh(inner, inner)
    inner += _ONE[u.dtype]
    inner *= u
    return inner


def attend_row(queries: Array, keys: Array, values: Array) -> Array:
    """Attention of one new token, which may see every cached position: no mask.

    queries (G, H/G, D) already scaled, keys (G, D, S), values (G, S, D) -> (C,).
    The softmax is normalised after the product with the values, on D numbers instead of S.
    """
    weights = queries @ keys  # (G, H/G, S)
    weights -= np.maximum.reduce(weights, axis=2, keepdims=True)
    np.exp(weights, weights)
    mixed = weights @ values  # (G, H/G, D)
    mixed /= np.add.reduce(weights, axis=2, keepdims=True)
    return mixed.reshape(-1)


def attend_rows(queries: Array, keys: Array, values: Array) -> Array:
    """Attention of T new tokens, the last T of S positions, each blind to later ones.

    queries (T, H, D) already scaled, keys (G, D, S), values (G, S, D) -> (T, C).
    """
    n_rows = len(queries)
    if n_rows <= _QUERY_BLOCK:
        return _attend_block(queries, keys, values)
    start = keys.shape[2] - n_rows
    blocks = []
    for first in range(0, n_rows, _QUERY_BLOCK):
        block = queries[first : first + _QUERY_BLOCK]
        stop = start + first + len(block)
        blocks.append(_attend_block(block, keys[:, :, :stop], values[:, :stop]))
    return np.concatenate(blocks)


def _attend_block(queries: Array, keys: Array, values: Array) -> Array:
    """attend_rows for queries (T, H, D) that see all S positions but the mask's corner."""
    n_rows, n_head, head_dim = queries.shape
    n_kv_head, _, n_positions = keys.shape
    # (T, H, D) -> (G, H/G * T, D): the query heads of one KV head share one product.
    grouped = queries.transpose(1, 0, 2).reshape(n_kv_head, -1, head_dim)
    weights = (grouped @ keys).reshape(n_head, n_rows, n_positions)
    # Only the last T columns hold positions that some row must not see.
    weights[:, :, n_positions - n_rows :] += causal_mask(n_rows, weights.dtype)
    weights -= np.maximum.reduce(weights, axis=2, keepdims=True)
    np.exp(weights, weights)
    mixed = weights.reshape(n_kv_head, -1, n_positions) @ values  # (G, H/G * T, D)
    mixed = mixed.reshape(n_head, n_rows, head_dim)
    mixed /= np.add.reduce(weights, axis=2, keepdims=True)
    return mixed.transpose(1, 0, 2).reshape(n_rows, -1)


@lru_cache(maxsize=2 * _QUERY_BLOCK)
def causal_mask(n_rows: int, dtype: np.dtype) -> Array:
    """(T, T): 0 where row i may see column j <= i, -inf elsewhere; read-only."""
    mask = np.triu(np.full((n_rows, n_rows), -np.inf, dtype), 1)
    mask.setflags(write=False)
    return mask
