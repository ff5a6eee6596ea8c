"""The memory of a KV cache, from a model's config.json: a layer plan, exact bytes, engine rules.

    plan(config).bytes(tokens=8192, sequences=1, dtype="bfloat16")
    engines.vllm.pool(plan(config), engines.vllm.Settings(max_model_len=8192, pool_bytes=2**34))

Needs nothing but the standard library, loads no weights and knows nothing of our own engine.
"""

from tinyllm.memory import engines
from tinyllm.memory.cache_plan import CachePlan, Entry, Piece, plan
from tinyllm.memory.dtypes import CACHE_TYPES, CacheTypes, cache_type
from tinyllm.memory.explain import explain_log
from tinyllm.memory.gguf_plan import plan_gguf
from tinyllm.memory.presets import preset

__all__ = [
    "CACHE_TYPES",
    "CachePlan",
    "CacheTypes",
    "Entry",
    "Piece",
    "cache_type",
    "engines",
    "explain_log",
    "plan",
    "plan_gguf",
    "preset",
]
