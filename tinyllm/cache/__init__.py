"""KV caches: what attention keeps of earlier tokens, stored in the dtype it is charged for."""

from tinyllm.cache.dense import CACHE_DTYPES, DenseCache, KVCache, new_cache
from tinyllm.cache.storage import Storage

__all__ = ["CACHE_DTYPES", "DenseCache", "KVCache", "Storage", "new_cache"]
