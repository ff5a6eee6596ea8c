"""The numerics: what a block does to its rows, for one row and for many.

A row is one token's vector. Every weight here is folded (see tinyllm/folding.py): norms are a
division by the root mean square, the 1 / sqrt(D) of attention sits in the query columns and the
activations' outer constants in the products around them. Plain forms of all this are in
experiments/reference.py; tests prove both equal. Attention itself is in tinyllm/attention.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinyllm.arena import Arena

Array = NDArray[np.floating]

# tanh-GELU: x/2 (1 + tanh(a x + b x^3)), Hendrycks & Gimpel 2016 with GPT-2's constants.
# With u = s x and s^3 = b it is u/(2s) (1 + tanh(u (a/s + u^2))): one product fewer per element.
GELU_ROOT, GELU_CUBIC = (2 / np.pi) ** 0.5, 0.044715  # a and b / a
GELU_SCALE = (GELU_ROOT * GELU_CUBIC) ** (1 / 3)  # s, folded into the product before
GELU_UNSCALE = 1 / (2 * GELU_SCALE)  # folded into the product after

GELU_SHIFT = GELU_ROOT / GELU_SCALE  # a / s

# SiLU: x / (1 + exp(-x)) = u (1 + tanh(u)) with u = x / 2, which cannot overflow.
SILU_SCALE = 1 / 2  # folded into the gate's product

# A product of more rows than this is added up in parts of at most so many terms.
FEW_ROWS, _TERMS_AT_ONCE = 16, 96

# Models whose weights are larger do not stay in any L2 cache, see calibration.py.
L2_BYTES = 4 * 2**20


def normalise_row(x: Array) -> Array:
    """(C + 1,) / its length, then a 1 in the last place, which meets the next product's bias.

    A row of the residual stream carries sqrt(C eps) in its last place, and has zero mean where
    the norm would take the mean off, so that its length is sqrt(C) times what the norm divides
    by; that factor is folded.
    """
    normalised: Array = x / np.sqrt(x.dot(x))
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
    # (n, in, out / n), a second copy, or a view where `whole` lies by columns; None: does not pay.
    chunks: Array | None
    # (in,) -> (out,); numpy's own method, bound to the matrix: a step makes dozens of these calls.
    row: Callable[[Array], Array]

    @classmethod
    def of(cls, whole: Array, chunk_columns: int, arena: Arena) -> "Weight":
        """With chunks of at most chunk_columns, their copy in the arena; 0 for none. The arrays
        become read-only."""
        chunks = None
        n_in, n_out = whole.shape
        if 0 < chunk_columns < n_out:
            width = max(width for width in range(1, chunk_columns + 1) if n_out % width == 0)
            chunks = whole.reshape(n_in, -1, width).transpose(1, 0, 2)
            if not whole.flags.f_contiguous:  # else every column lies in order, and so do chunks
                strided, chunks = chunks, arena.empty(chunks.shape, whole.dtype)
                chunks[...] = strided
            chunks.setflags(write=False)
        whole.setflags(write=False)
        return cls(whole, chunks, whole.T.dot)

    def rows(self, x: Array) -> Array:
        """(T, in) -> (T, out), by the path for T."""
        if self.chunks is None or len(x) > FEW_ROWS:
            return product_rows(x, self.whole)
        n, _, width = self.chunks.shape
        product = np.empty((len(x), n * width), x.dtype)
        # BLAS writes the rows of a chunk where they belong in the whole product.
        np.matmul(x, self.chunks, product.reshape(len(x), n, width).transpose(1, 0, 2))
        return product


def path_of(weight: Weight, n_rows: int) -> str:
    """The name of the path that a product of n_rows takes, for benches to show."""
    if n_rows == 1:
        return "one row"
    if n_rows > FEW_ROWS:
        return "many rows"
    if weight.chunks is None:
        return "few rows, whole"
    return f"few rows, chunks of {weight.chunks[0].nbytes / 1024:.0f} KiB"


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


def scaled_swiglu(u: Array, constants: Constants) -> Array:
    """SiLU of the gate times the rest: (..., 2 F) -> (..., F), the gate's half times SILU_SCALE.

    Shazeer 2020, "GLU variants improve transformer"; u is left as it is.
    """
    half = u.shape[-1] // 2
    gate = u[..., :half]
    inner = np.tanh(gate)
    inner += constants.one
    inner *= gate
    inner *= u[..., half:]
    return inner


def place_heads(heads: Array, turns: Array, gains: Array | None, eps: Array) -> None:
    """Queries and keys to their rotary positions, in place: heads (..., H + G, D).

    Pairs of neighbouring dimensions are turned as complex numbers by turns (..., D / 2), which
    have length one (Su et al. 2021, "RoFormer"). Before that, where there are gains (H + G, D),
    an rms norm on each head: the gains hold its factor sqrt(D), eps is D times that of the norm.
    """
    if gains is not None:
        heads *= (np.vecdot(heads, heads) + eps)[..., None] ** -0.5 * gains
    pairs = heads.view(turns.dtype)
    pairs *= turns


def rotary_turns(head_dim: int, context_length: int, theta: float, dtype: np.dtype) -> Array:
    """(context, D / 2) complex: at position s, pair i is turned by s / theta^(2 i / D)."""
    frequencies = theta ** -(np.arange(0, head_dim, 2) / head_dim)
    angles = np.arange(context_length)[:, None] * frequencies
    turns: Array = np.exp(1j * angles).astype(np.result_type(dtype, np.complex64))
    turns.setflags(write=False)
    return turns
