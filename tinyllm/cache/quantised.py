"""Integers with scales by token: int8, and int4 packed two to a byte.

Symmetric quantisation: scale = largest |x| / limit, rounded to float16; code = x / scale, rounded
to even. The limit is 127 or 7, so that codes and their negatives are alike. Everything lies
with the positions last, for values too: operations over whole rows of positions are the fast
ones, and values are given back as a transposed view, which BLAS takes as it is.
"""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache.formats import Format
from tinyllm.cache.storage import Positions, StorageShape, read_only
from tinyllm.layers import Array

_SMALLEST = np.array(
    np.finfo(np.float16).smallest_subnormal, np.float32
)  # divides where the scale is 0


class Codes(Protocol):
    """Whole numbers -limit..limit as an array (G, D, capacity) in fewer bytes."""

    limit: int
    slab: NDArray[Any]

    def write(self, start: int, codes: Array) -> None:
        """Store (T, G, D) whole numbers, which are floats still, from position start on."""

    def read(self, stop: int, dtype: np.dtype) -> Array:
        """(G, D, stop) as a fresh array of floats."""


class Int8Codes:
    """One code a byte."""

    limit = 127

    def __init__(self, shape: StorageShape) -> None:
        self.slab: NDArray[Any] = np.zeros(
            (shape.n_kv_head, shape.head_dim, shape.capacity), np.int8
        )

    def write(self, start: int, codes: Array) -> None:
        """Store (T, G, D)."""
        self.slab[:, :, start : start + len(codes)] = codes.transpose(1, 2, 0)

    def read(self, stop: int, dtype: np.dtype) -> Array:
        """(G, D, stop)."""
        codes: Array = self.slab[:, :, :stop].astype(dtype)
        return codes


class Int4Codes:
    """Two codes a byte: dimension d + 8 below, dimension d + D/2 + 8 above."""

    limit = 7
    _BIAS = 8

    def __init__(self, shape: StorageShape) -> None:
        self.slab: NDArray[Any] = np.zeros(
            (shape.n_kv_head, shape.head_dim // 2, shape.capacity), np.uint8
        )

    def write(self, start: int, codes: Array) -> None:
        """Store (T, G, D)."""
        biased = (codes + self._BIAS).astype(np.uint8)
        half = biased.shape[2] // 2
        packed = np.left_shift(biased[:, :, half:], 4)
        packed |= biased[:, :, :half]
        self.slab[:, :, start : start + len(codes)] = packed.transpose(1, 2, 0)

    def read(self, stop: int, dtype: np.dtype) -> Array:
        """(G, D, stop)."""
        packed = self.slab[:, :, :stop]
        n_kv_head, half, _ = packed.shape
        codes: Array = np.empty((n_kv_head, 2 * half, stop), dtype)
        np.bitwise_and(packed, 15, out=codes[:, :half], casting="unsafe")
        np.right_shift(packed, 4, out=codes[:, half:], casting="unsafe")
        codes -= self._BIAS
        return codes


def codes_of(kind: Format, shape: StorageShape) -> Codes:
    """The packing for a format's bits."""
    return Int4Codes(shape) if kind.bits == 4 else Int8Codes(shape)


def quantise(vectors: Array, limit: Array, axis: int) -> tuple[Array, NDArray[np.float16]]:
    """Codes (as floats) and scales of vectors whose elements along `axis` share a scale.

    The scales keep that axis, with length 1. Where all is zero, or too small for float16, the
    scale is 0 and so is what the codes stand for. `limit` is a 0-d array in the dtype of the
    vectors; a code is clipped to it, as the scale was rounded.
    """
    largest = np.maximum.reduce(np.abs(vectors), axis=axis, keepdims=True)
    largest /= limit
    scales = largest.astype(np.float16)
    codes = vectors / np.maximum(scales.astype(vectors.dtype), _SMALLEST)
    np.rint(codes, out=codes)
    np.minimum(codes, limit, out=codes)
    np.maximum(codes, -limit, out=codes)
    return codes, scales


class TokenStorage:
    """int8 or int4 with float16 scales by KV head, position and group of dimensions."""

    def __init__(self, shape: StorageShape, kind: Format, compute_dtype: np.dtype) -> None:
        self._codes = codes_of(kind, shape)
        n_groups = kind.scales(shape.head_dim)
        self._scales = np.zeros((shape.n_kv_head, n_groups, shape.capacity), np.float16)
        self._limit = np.array(self._codes.limit, compute_dtype)
        self._dims_first = shape.dims_first
        self._compute_dtype = compute_dtype

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Read-only views of codes and scales."""
        return {"codes": read_only(self._codes.slab), "scales": read_only(self._scales)}

    @property
    def nbytes(self) -> int:
        """Bytes allocated, scales included."""
        return self._codes.slab.nbytes + self._scales.nbytes

    def write(self, start: int, vectors: Array) -> None:
        """Quantise and store (T, G, D) at positions start..start+T-1."""
        n_kv_head, n_groups, _ = self._scales.shape
        grouped = vectors.reshape(len(vectors), n_kv_head, n_groups, -1)  # (T, G, groups, D/groups)
        codes, scales = quantise(grouped, self._limit, axis=-1)
        self._codes.write(start, codes.reshape(vectors.shape))
        self._scales[:, :, start : start + len(vectors)] = scales[..., 0].transpose(1, 2, 0)

    def write_one(self, position: int, vectors: Array) -> None:
        """Quantise and store (G, D) at one position."""
        self.write(position, vectors[None])

    def read(self, stop: int) -> Array:
        """Codes times scales."""
        vectors = self._codes.read(stop, self._compute_dtype)  # (G, D, stop)
        scales = self._scales[:, :, :stop].astype(self._compute_dtype)  # (G, groups, stop)
        n_kv_head, n_groups, _ = scales.shape
        grouped = vectors.reshape(n_kv_head, n_groups, -1, stop)
        grouped *= scales[:, :, None]
        return vectors if self._dims_first else vectors.transpose(0, 2, 1)

    def rewind(self, length: int) -> None:
        """Nothing to do: later positions are written over."""

    def copy(self, at: Positions, source: Self, where: NDArray[np.intp]) -> None:
        """Take over codes and scales: nothing is rounded twice."""
        self._codes.slab[:, :, at] = source._codes.slab.take(where, 2)
        self._scales[:, :, at] = source._scales.take(where, 2)
