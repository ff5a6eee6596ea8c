"""A dense KV cache: preallocated storages per layer, in any of the formats.

Writing does not move `length`; the model moves it once, when a whole call has succeeded, so a
failed call leaves the cache as it was.
"""

from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache.channels import ChannelStorage
from tinyllm.cache.formats import BLOCK, Format, format_of, pageable
from tinyllm.cache.quantised import TokenStorage
from tinyllm.cache.storage import FloatStorage, Slab, Storage, StorageShape
from tinyllm.config import ModelConfig
from tinyllm.errors import CacheOverflowError, SettingError


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
        """Name of the format, one of CACHE_DTYPES."""

    @property
    def call_ends(self) -> int | None:
        """No row may be in one call with rows beyond the next multiple of this; None: all may."""

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
        """Make sure of room for n_new more tokens, else CacheOverflowError and nothing changed."""

    def commit(self, tokens: Sequence[int]) -> None:
        """Count written tokens as held."""

    def truncate(self, length: int) -> None:
        """Forget all tokens from position `length` on, as if they had never been."""


class DenseCache:
    """The KV cache of one sequence; nbytes = Format.bytes, exactly what is allocated."""

    def __init__(
        self, config: ModelConfig, capacity: int, dtype: str, compute_dtype: np.dtype
    ) -> None:
        if capacity < 1:
            raise SettingError(f"capacity must be at least 1 token, not {capacity}")
        self.config = config
        self.format = format_of(dtype)
        self._length = 0
        self.capacity = capacity
        self.call_ends = BLOCK if self.format.keys_by_channel else None

        def storages(dims_first: bool) -> list[Storage]:
            shape = StorageShape(config.n_kv_head, config.head_dim, capacity, dims_first)
            return [new_storage(shape, self.format, compute_dtype) for _ in range(config.n_layer)]

        self.layers = list(zip(storages(True), storages(False), strict=True))

    @property
    def dtype(self) -> str:
        """Name of the format."""
        return self.format.name

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
        """Bytes that the tokens held take: nbytes of a cache just large enough."""
        return self.format.bytes(self.config, self._length)

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

    def commit(self, tokens: Sequence[int]) -> None:
        """Count written tokens as held."""
        self._length += len(tokens)

    def copy_from(self, source: "DenseCache") -> None:
        """Hold what another cache of this model and format holds, and nothing else.

        SettingError for a format whose keys share scales over positions.
        """
        pageable(self.format)
        self.truncate(0)
        self.reserve(source.length)
        positions = np.arange(source.length)
        for mine, others in zip(self.layers, source.layers, strict=True):
            for storage, other in zip(mine, others, strict=True):
                slab = cast(Slab, storage)  # as all pageable formats are stored
                slab.copy(slice(source.length), cast(Slab, other), positions)
        self._length = source.length

    def keep(self, start: int, branch: Sequence[int]) -> None:
        """Of a tree's tokens, written from `start` on, leave those of one branch, in order.

        `branch` holds their places behind start. SettingError for keys with scales by channel.
        """
        if list(branch) != list(range(len(branch))):  # else all lie where they belong
            pageable(self.format)
            at, where = slice(start, start + len(branch)), start + np.asarray(branch)
            for keys, values in self.layers:
                for storage in (cast(Slab, keys), cast(Slab, values)):
                    storage.copy(at, storage, where)
        self.truncate(start + len(branch))

    def truncate(self, length: int) -> None:
        """Forget all tokens from position `length` on; O(1), nothing is erased or moved.

        SettingError for a length beyond the cache, or, by channel, inside a block coded long ago.
        """
        if not 0 <= length <= self._length:
            raise SettingError(
                f"cannot truncate a cache of {self._length} tokens to {length}: "
                f"give a length from 0 to {self._length}"
            )
        if self.call_ends is not None:  # all other formats have nothing to do
            for keys, values in self.layers:
                keys.rewind(length)
                values.rewind(length)
        self._length = length


def new_storage(shape: StorageShape, kind: Format, compute_dtype: np.dtype) -> Storage:
    """Empty storage of a format for one layer's keys or values; SettingError for a wrong D."""
    kind.check(shape.head_dim)
    if kind.keys_by_channel and shape.dims_first:
        return ChannelStorage(shape, kind, compute_dtype)
    return new_slab(shape, kind, compute_dtype)


def new_slab(shape: StorageShape, kind: Format, compute_dtype: np.dtype) -> Slab:
    """Empty storage of floats, or of integers with scales by token."""
    if kind.scaled:
        return TokenStorage(shape, kind, compute_dtype)
    return FloatStorage(shape, kind.name, compute_dtype)


def new_cache(
    config: ModelConfig, dtype: str, capacity: int | None, compute_dtype: np.dtype
) -> DenseCache:
    """A cache for one sequence; capacity defaults to the context length."""
    if capacity is None:
        capacity = config.context_length
    return DenseCache(config, capacity, dtype, compute_dtype)
