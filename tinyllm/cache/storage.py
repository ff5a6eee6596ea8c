"""What a cache asks of the storage of one layer's keys or values, and the storage of floats.

Keys are given back as (G, D, S) and values as (G, S, D), so that both products of a decode step
read memory in order. Integers with scales are in quantised.py and channels.py.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tinyllm.layers import Array

# Our names -> numpy's. e4m3 is the kind without infinities (4 exponent bits, largest 448), the
# one that vLLM and the hardware mean.
_STORED: dict[str, Any] = {
    "bfloat16": ml_dtypes.bfloat16,
    "fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
}
# Of the floats that numpy and ml_dtypes widen slowly, one by one.
_MANTISSA_BITS = {"float16": 10, "fp8_e4m3": 3, "fp8_e5m2": 2}

Positions = slice | NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class StorageShape:
    """Of one layer's keys (dims_first: read as (G, D, S)) or values (read as (G, S, D))."""

    n_kv_head: int
    head_dim: int
    capacity: int
    dims_first: bool


class Storage(Protocol):
    """Vectors of length D by KV head and position, of one layer.

    What is stored for a position depends on the vectors up to it alone, never on how they were
    divided into calls: write(T vectors) leaves the same bits as T times write_one.
    """

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

    def rewind(self, length: int) -> None:
        """Prepare for writes from position `length` on; SettingError where that is too late."""


class Slab(Storage, Protocol):
    """A storage whose positions stand for themselves: it takes over vectors as stored elsewhere."""

    def copy(self, at: Positions, source: Self, where: NDArray[np.intp]) -> None:
        """Let positions `at` hold what `source`, of the same format and model, holds `where`."""


class FloatStorage:
    """Floats of any width, each stored by itself, with a scale of 1.

    fp8 saturates, as in vLLM: what lies beyond its largest number is stored as that number.
    Beyond float16's range, which no sound model comes near, lies its infinity.
    """

    def __init__(self, shape: StorageShape, dtype: str, compute_dtype: np.dtype) -> None:
        self._dims_first = shape.dims_first
        stored = np.dtype(_STORED.get(dtype, dtype))
        extent = (shape.head_dim, shape.capacity)
        self._slab: NDArray[Any] = np.zeros(
            (shape.n_kv_head, *(extent if shape.dims_first else extent[::-1])), stored
        )
        self._compute_dtype = None if stored == compute_dtype else compute_dtype
        self._widen: Widening | None = None
        self._largest: Array | None = None
        if dtype in _MANTISSA_BITS:
            if dtype != "float16":
                self._largest = largest_of(stored, compute_dtype)
            if compute_dtype == np.float32:
                self._widen = Widening(self._slab, _MANTISSA_BITS[dtype])

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Read-only view of the slab."""
        return {"elements": read_only(self._slab)}

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._slab.nbytes

    def write(self, start: int, vectors: Array) -> None:
        """Store (T, G, D) at positions start..start+T-1."""
        stop = start + len(vectors)
        vectors = saturated(vectors, self._largest)
        if self._dims_first:
            self._slab[:, :, start:stop] = vectors.transpose(1, 2, 0)
        else:
            self._slab[:, start:stop] = vectors.transpose(1, 0, 2)

    def write_one(self, position: int, vectors: Array) -> None:
        """Store (G, D) at one position."""
        if self._largest is not None:
            vectors = saturated(vectors, self._largest)
        if self._dims_first:
            self._slab[:, :, position] = vectors
        else:
            self._slab[:, position] = vectors

    def read(self, stop: int) -> Array:
        """A view when stored in the dtype of computation, else a converted copy."""
        if self._widen is not None:
            return self._widen(np.s_[:, :, :stop] if self._dims_first else np.s_[:, :stop])
        floats: Array = self._slab[:, :, :stop] if self._dims_first else self._slab[:, :stop]
        return floats if self._compute_dtype is None else floats.astype(self._compute_dtype)

    def rewind(self, length: int) -> None:
        """Nothing to do: later positions are written over."""

    def copy(self, at: Positions, source: Self, where: NDArray[np.intp]) -> None:
        """Take over the elements; take() is several times faster here than an index is."""
        if self._dims_first:
            self._slab[:, :, at] = source._slab.take(where, 2)
        else:
            self._slab[:, at] = source._slab.take(where, 1)


class Widening:
    """Short floats to float32 with whole-array integer operations, exact for finite numbers.

    Sign, exponent and mantissa are shifted to where float32 has them, and a product corrects
    the exponent's bias; subnormal numbers come out right by themselves. The same as astype in
    a third to a tenth of its time (a table of all 256 values lies in between). Float16's
    infinities would become 65,536, one more than it has: two products take them, and no other
    number, through float32's own. After F. Giesen, half_to_float, 2012.
    """

    def __init__(self, slab: NDArray[Any], mantissa_bits: int) -> None:
        bits = 8 * slab.itemsize
        exponent_bits = bits - 1 - mantissa_bits
        self._bits = slab.view(f"int{bits}")  # signed, so that the sign spreads to the left
        self._shift = np.array(23 - mantissa_bits, np.int32)
        magnitude = (1 << (bits - 1)) - 1
        self._mask = np.array((magnitude << (23 - mantissa_bits)) - (1 << 31), np.int32)
        self._to_the_top = np.array(2.0**112, np.float32) if slab.dtype == np.float16 else None
        self._unbias = np.array(2.0 ** (127 - ((1 << (exponent_bits - 1)) - 1)), np.float32)

    def __call__(self, held: Any) -> Array:
        """The numbers at an index of the slab, as a fresh float32 array."""
        shifted: NDArray[np.int32] = self._bits[held].astype(np.int32)
        shifted <<= self._shift
        shifted &= self._mask
        floats: Array = shifted.view(np.float32)
        floats *= self._unbias
        if self._to_the_top is not None:
            floats *= self._to_the_top
            floats /= self._to_the_top
        return floats


def largest_of(stored: np.dtype, compute_dtype: np.dtype) -> Array:
    """The largest number of a float type, as a 0-d array in the dtype of computation."""
    info: Any = ml_dtypes.finfo(stored)  # type: ignore[no-untyped-call]  # it has no types
    return np.array(info.max, compute_dtype)


def saturated(vectors: Array, largest: Array | None) -> Array:
    """With what lies beyond +-largest brought back to it; unchanged without a largest."""
    if largest is None:
        return vectors
    limited: Array = np.maximum(np.minimum(vectors, largest), -largest)
    return limited


def read_only(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """A view that cannot be written through."""
    view = array.view()
    view.setflags(write=False)
    return view
