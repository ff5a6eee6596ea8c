"""The memory of a KV cache, from a model's config.json: a layer plan, exact bytes, engine rules.

    plan(config).bytes(tokens=8192, sequences=1, dtype="bfloat16")

Needs nothing but the standard library, loads no weights and knows nothing of our own engine.
"""

from tinyllm.memory.cache_plan import CachePlan, Entry, Piece, plan
from tinyllm.memory.dtypes import CACHE_TYPES, CacheTypes, cache_type

__all__ = ["CACHE_TYPES", "CachePlan", "CacheTypes", "Entry", "Piece", "cache_type", "plan"]
