"""How serving engines turn a CachePlan into memory: vLLM, llama.cpp and SGLang.

Each module reads one engine's rules, names the version it read them from, and knows no other.
"""

from tinyllm.memory.engines import llamacpp, sglang, vllm

__all__ = ["llamacpp", "sglang", "vllm"]
