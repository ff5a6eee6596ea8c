"""KV caches: what attention keeps of earlier tokens, stored in the format it is charged for."""

from tinyllm.cache.dense import DenseCache, KVCache, new_cache
from tinyllm.cache.first_layers import FirstLayers
from tinyllm.cache.formats import CACHE_DTYPES, PAGED_DTYPES, Format, format_of
from tinyllm.cache.paged import PagedCache, PagedPool
from tinyllm.cache.storage import Storage

__all__ = [
    "CACHE_DTYPES",
    "PAGED_DTYPES",
    "DenseCache",
    "FirstLayers",
    "Format",
    "KVCache",
    "PagedCache",
    "PagedPool",
    "Storage",
    "format_of",
    "new_cache",
]
