"""The first layers of a cache as a cache of their own, for a model that ends there.

It has a length, and no bytes: what it writes behind the whole cache's tokens is written over by
the whole cache's next call, and counts for nothing until then.
"""

from collections.abc import Sequence

from tinyllm.cache.dense import DenseCache, KVCache
from tinyllm.cache.storage import Storage
from tinyllm.config import ModelConfig
from tinyllm.errors import CacheOverflowError, SettingError


class FirstLayers:
    """A KVCache over some layers of another one; `follow` puts it where that one ends."""

    nbytes = used_nbytes = 0  # all are the whole cache's

    def __init__(self, whole: KVCache, config: ModelConfig) -> None:
        """Config is the shallower model's. SettingError for blocks, which have other owners."""
        if not isinstance(whole, DenseCache):
            raise SettingError("first layers can share a dense cache only, not one in blocks")
        self.config = config
        self.length = whole.length
        self.capacity, self.dtype, self.call_ends = whole.capacity, whole.dtype, whole.call_ends
        self.layers: Sequence[tuple[Storage, Storage]] = whole.layers[: config.n_layer]
        self._whole = whole

    def follow(self) -> None:
        """Hold the tokens that the whole cache holds."""
        self.length = self._whole.length

    def reserve(self, n_new: int) -> None:
        """Check that n_new more tokens fit, else CacheOverflowError; changes nothing."""
        if self.length + n_new > self.capacity:
            raise CacheOverflowError(
                f"the first layers share a KV cache with room for {self.capacity} tokens, and "
                f"{self.length + n_new} would be needed: draft fewer tokens"
            )

    def commit(self, tokens: Sequence[int]) -> None:
        """Count written tokens as held."""
        self.length += len(tokens)

    def truncate(self, length: int) -> None:
        """Forget tokens written ahead; SettingError for a length among the whole cache's."""
        if not self._whole.length <= length <= self.length:
            raise SettingError(
                f"cannot truncate to {length}: give a length from {self._whole.length} "
                f"to {self.length}"
            )
        self.length = length
