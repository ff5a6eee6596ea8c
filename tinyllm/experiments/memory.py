"""The size of a cache told three ways that must agree: the formula, nbytes, and its arrays.

For every shipped model and every format. Needs no weights: bytes do not depend on them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tinyllm.cache import CACHE_DTYPES, format_of, new_cache
from tinyllm.config import PRESETS, ModelConfig
from tinyllm.experiments.settings import CONTEXT_LENGTH


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The whole cache's size."""

    formula: int
    nbytes: int
    arrays: int  # sum of array.nbytes

    @property
    def agree(self) -> bool:
        return self.formula == self.nbytes == self.arrays


def cache_size(config: ModelConfig, dtype: str, capacity: int) -> CacheSize:
    """The size of a new cache of `capacity` tokens."""
    cache = new_cache(config, dtype, capacity, np.dtype("float32"))
    arrays = sum(array.nbytes for array in cache.stored_arrays.values())
    return CacheSize(format_of(dtype).bytes(config, capacity), cache.nbytes, arrays)


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One model's cache in one format."""

    model: str
    kv_heads: int
    dtype: str
    tokens: int
    formula_bytes: int
    nbytes: int
    array_bytes: int
    agree: bool


def rows(
    models: Mapping[str, ModelConfig] = PRESETS, tokens: int = CONTEXT_LENGTH
) -> Iterator[MemoryRow]:
    """Every model in every format, for caches of so many tokens."""
    for name, config in models.items():
        for dtype in CACHE_DTYPES:
            size = cache_size(config, dtype, tokens)
            yield MemoryRow(
                name,
                config.n_kv_head,
                dtype,
                tokens,
                size.formula,
                size.nbytes,
                size.arrays,
                size.agree,
            )
