"""Layer norm and tanh-GELU with their derivatives, written to touch memory as little as possible.

Every function writes into arrays it is given. Sums over a row or a column are products with a
constant vector, which BLAS does faster than a reduction over 96 numbers. Knows no model.
"""

import numpy as np

from tinyllm.config import NORM_EPS
from tinyllm.layers import GELU_CUBIC, GELU_ROOT
from tinyllm.training.parameters import Array

_ROWS = 96  # rows of the hidden layer treated at a time: four arrays of that size fit in L2


def layer_norm(
    x: Array, gain: Array, bias: Array, normed: Array, inverse: Array, out: Array
) -> None:
    """out = normed * gain + bias, where normed = (x - mean) / sqrt(variance + NORM_EPS).

    x, normed and out are (T, C), inverse is (T,): normed and inverse are kept for the way back.
    """
    width = x.shape[1]
    mean = x @ np.full(width, 1.0 / width, x.dtype)
    np.subtract(x, mean[:, None], out=normed)
    np.einsum("tc,tc->t", normed, normed, out=inverse)
    inverse /= width
    inverse += NORM_EPS
    np.sqrt(inverse, out=inverse)
    np.reciprocal(inverse, out=inverse)
    normed *= inverse[:, None]
    np.multiply(normed, gain, out=out)
    out += bias


def layer_norm_backward(
    upstream: Array,
    gain: Array,
    normed: Array,
    inverse: Array,
    gradients: tuple[Array, Array],
    into: Array,
    scratch: Array,
) -> None:
    """Add the derivative of layer_norm to `into` and to the gain's and bias's gradients.

    upstream (T, C) is overwritten, scratch is (T, C). With d = upstream * gain:
    dx = inverse * (d - mean(d) - normed * mean(d * normed)).
    """
    rows, width = upstream.shape
    ones = np.ones(rows, upstream.dtype)
    share = gain / width
    np.multiply(upstream, normed, out=scratch)
    gradients[0][...] += ones @ scratch
    gradients[1][...] += ones @ upstream
    mean = upstream @ share
    slope = scratch @ share
    upstream *= gain
    upstream -= mean[:, None]
    np.multiply(normed, slope[:, None], out=scratch)
    upstream -= scratch
    upstream *= inverse[:, None]
    into += upstream


def gelu(x: Array, out: Array, slope: Array, scratch: Array) -> None:
    """out = 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3); slope is its derivative.

    With s = (1 + tanh(u)) / 2 the derivative is s + x s (1 - s) 2 du/dx. All arrays are
    (T, hidden); x is overwritten; scratch holds at least 96 rows. Works by rows that fit in L2.
    """
    for start in range(0, len(x), _ROWS):
        rows = slice(start, start + _ROWS)
        xs, outs, slopes = x[rows], out[rows], slope[rows]
        s = scratch[: len(xs)]
        np.multiply(xs, xs, out=slopes)
        np.multiply(slopes, GELU_CUBIC * GELU_ROOT, out=s)
        s += GELU_ROOT
        s *= xs
        np.tanh(s, out=s)
        s *= 0.5
        s += 0.5
        np.multiply(xs, s, out=outs)
        slopes *= 6.0 * GELU_CUBIC * GELU_ROOT
        slopes += 2.0 * GELU_ROOT
        slopes *= outs
        np.subtract(1.0, s, out=xs)
        slopes *= xs
        slopes += s
