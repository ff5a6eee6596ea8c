"""A dense KV cache: one preallocated slab per layer, in a float dtype or quantised.

Writing does not move `length`; the model moves it once, when a whole call has succeeded, so a
failed call leaves the cache as it was.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache.storage import CACHE_DTYPES, Storage, StorageShape, new_storage
from tinyllm.config import ModelConfig
from tinyllm.errors import CacheOverflowError, SettingError

__all__ = ["CACHE_DTYPES", "DenseCache", "KVCache", "new_cache"]


class KVCache(Protocol):
    """What the model needs of a cache, however it is stored."""

    @property
    def config(self) -> ModelConfig:
        """The model it serves."""

    @property
    def length(self) -> int:
        """S, the tokens held."""

    @property
    def capacity(self) -> int:
        """The most tokens it can hold."""

    @property
    def dtype(self) -> str:
        """Name of the stored type, one of CACHE_DTYPES."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated, scales included."""

    @property
    def used_nbytes(self) -> int:
        """Bytes that the tokens held take, scales included."""

    @property
    def layers(self) -> Sequence[tuple[Storage, Storage]]:
        """The storages of keys and values, layer by layer."""

    def reserve(self, n_new: int) -> None:
        """Check that n_new more tokens fit, else CacheOverflowError; changes nothing."""

    def commit(self, n_new: int) -> None:
        """Count n_new written tokens as held."""

    def truncate(self, length: int) -> None:
        """Forget all tokens from position `length` on."""


class DenseCache:
    """The KV cache of one sequence.

    nbytes = 2 L G capacity (D bytes-per-element + scale bytes), exactly what is allocated.
    """

    def __init__(
        self, config: ModelConfig, capacity: int, dtype: str, compute_dtype: np.dtype
    ) -> None:
        if capacity < 1:
            raise SettingError(f"capacity must be at least 1 token, not {capacity}")
        self.config = config
        self._length = 0
        self.capacity = capacity
        self.dtype = dtype

        def storages(dims_first: bool) -> list[Storage]:
            shape = StorageShape(config.n_kv_head, config.head_dim, capacity, dims_first)
            return [new_storage(shape, dtype, compute_dtype) for _ in range(config.n_layer)]

        self.layers = list(zip(storages(True), storages(False), strict=True))

    @property
    def length(self) -> int:
        """S, the tokens held."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes allocated for keys, values and scales."""
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)

    @property
    def used_nbytes(self) -> int:
        """Bytes of the positions held; every position costs the same."""
        return self.nbytes // self.capacity * self._length

    @property
    def stored_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Read-only views of all that is allocated, by name: "0.keys.elements", ..."""
        return {
            f"{layer}.{kind}.{name}": array
            for layer, (keys, values) in enumerate(self.layers)
            for kind, storage in (("keys", keys), ("values", values))
            for name, array in storage.arrays.items()
        }

    def reserve(self, n_new: int) -> None:
        """Check that n_new more tokens fit, else CacheOverflowError; changes nothing."""
        needed = self._length + n_new
        if needed > self.capacity:
            raise CacheOverflowError(
                f"the KV cache has room for {self.capacity} tokens and {needed} would be needed "
                f"({self._length} held + {n_new} new): make it with new_cache(capacity={needed}) "
                f"or truncate it to {max(self.capacity - n_new, 0)} first"
            )

    def commit(self, n_new: int) -> None:
        """Count n_new written tokens as held."""
        self._length += n_new

    def truncate(self, length: int) -> None:
        """Forget all tokens from position `length` on; O(1), nothing is erased or moved."""
        if not 0 <= length <= self._length:
            raise SettingError(
                f"cannot truncate a cache of {self._length} tokens to {length}: "
                f"give a length from 0 to {self._length}"
            )
        self._length = length


def new_cache(
    config: ModelConfig, dtype: str, capacity: int | None, compute_dtype: np.dtype
) -> DenseCache:
    """A cache for one sequence; capacity defaults to the context length."""
    if capacity is None:
        capacity = config.context_length
    return DenseCache(config, capacity, dtype, compute_dtype)
