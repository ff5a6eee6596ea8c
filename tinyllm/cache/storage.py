"""How the numbers of a KV cache are stored: as floats, or as int8 with a scale.

A storage holds one layer's keys or values, and gives them back in the dtype the engine computes
in. Keys lie as (G, D, capacity) and values as (G, capacity, D), so that both products of a
decode step read memory in order.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tinyllm.errors import SettingError
from tinyllm.layers import Array

CACHE_DTYPES = ("float32", "float16", "int8")
_INT8_LIMIT = 127


@dataclass(frozen=True, slots=True)
class StorageShape:
    """Of one layer's keys (dims_first: (G, D, capacity)) or values ((G, capacity, D))."""

    n_kv_head: int
    head_dim: int
    capacity: int
    dims_first: bool

    @property
    def slab(self) -> tuple[int, int, int]:
        """Shape of the array of elements."""
        if self.dims_first:
            return self.n_kv_head, self.head_dim, self.capacity
        return self.n_kv_head, self.capacity, self.head_dim


class Storage(Protocol):
    """Vectors of length D by KV head and position, of one layer."""

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Read-only views of what is allocated."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""

    def write(self, start: int, vectors: Array) -> None:
        """Store (T, G, D) at positions start..start+T-1."""

    def write_one(self, position: int, vectors: Array) -> None:
        """Store (G, D) at one position: the decode step's write, without a transpose."""

    def read(self, stop: int) -> Array:
        """Keys (G, D, stop) or values (G, stop, D) in the dtype of computation."""


class FloatStorage:
    """float64, float32 or float16: each element stored as it is."""

    def __init__(self, shape: StorageShape, dtype: str, compute_dtype: np.dtype) -> None:
        self._dims_first = shape.dims_first
        self._slab = np.zeros(shape.slab, dtype)
        self._compute_dtype = None if self._slab.dtype == compute_dtype else compute_dtype

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Read-only view of the slab."""
        return {"elements": _read_only(self._slab)}

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._slab.nbytes

    def write(self, start: int, vectors: Array) -> None:
        """Store (T, G, D) at positions start..start+T-1."""
        stop = start + len(vectors)
        if self._dims_first:
            self._slab[:, :, start:stop] = vectors.transpose(1, 2, 0)
        else:
            self._slab[:, start:stop] = vectors.transpose(1, 0, 2)

    def write_one(self, position: int, vectors: Array) -> None:
        """Store (G, D) at one position."""
        if self._dims_first:
            self._slab[:, :, position] = vectors
        else:
            self._slab[:, position] = vectors

    def read(self, stop: int) -> Array:
        """A view when stored in the dtype of computation, else a converted copy."""
        held = self._slab[:, :, :stop] if self._dims_first else self._slab[:, :stop]
        return held if self._compute_dtype is None else held.astype(self._compute_dtype)


class Int8Storage:
    """Symmetric int8 with one float16 scale per KV head and position.

    scale = max|x| / 127 rounded to float16, code = x / scale rounded to even, so that the
    largest element of a vector takes the code 127 or -127.
    """

    def __init__(self, shape: StorageShape, dtype: str, compute_dtype: np.dtype) -> None:
        self._codes = FloatStorage(shape, dtype, compute_dtype)
        self._scales = np.zeros((shape.n_kv_head, shape.capacity), np.float16)
        self._compute_dtype = compute_dtype
        self._scale_axis = 1 if shape.dims_first else 2  # where D lies

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Read-only views of codes and scales."""
        return {"codes": self._codes.arrays["elements"], "scales": _read_only(self._scales)}

    @property
    def nbytes(self) -> int:
        """Bytes allocated, scales included."""
        return self._codes.nbytes + self._scales.nbytes

    def write(self, start: int, vectors: Array) -> None:
        """Quantise and store (T, G, D) at positions start..start+T-1."""
        scales = (np.abs(vectors).max(axis=-1) / _INT8_LIMIT).astype(np.float16)  # (T, G)
        # A vector of zeros (or too small for float16) keeps scale 0 and codes 0.
        divisor = np.where(scales > 0, scales, np.inf).astype(vectors.dtype)
        codes = np.rint(vectors / divisor[..., None])
        self._codes.write(start, np.clip(codes, -_INT8_LIMIT, _INT8_LIMIT))
        self._scales[:, start : start + len(vectors)] = scales.T

    def write_one(self, position: int, vectors: Array) -> None:
        """Quantise and store (G, D) at one position."""
        self.write(position, vectors[None])

    def read(self, stop: int) -> Array:
        """Codes times scales."""
        vectors = self._codes.read(stop)  # a fresh copy: int8 is never computed in
        scales = self._scales[:, :stop].astype(self._compute_dtype)  # (G, stop)
        vectors *= np.expand_dims(scales, self._scale_axis)
        return vectors


def new_storage(shape: StorageShape, dtype: str, compute_dtype: np.dtype) -> Storage:
    """The storage of a dtype name; SettingError lists the names that exist."""
    if dtype == "int8":
        return Int8Storage(shape, dtype, compute_dtype)
    if dtype in CACHE_DTYPES or dtype == "float64":  # float64: exactness tests only
        return FloatStorage(shape, dtype, compute_dtype)
    raise SettingError(f"KV dtype {dtype!r} is unknown; choose {', '.join(CACHE_DTYPES)}")


def _read_only(array: NDArray[np.generic]) -> NDArray[np.generic]:
    view = array.view()
    view.setflags(write=False)
    return view
