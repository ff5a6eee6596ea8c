"""Bytes of a model's weights, and what they and the engine leave of a GPU for the cache.

Weights are parameters x bits, as if every parameter were stored so; checkpoints often keep the
embedding in 16 bits. What activations and CUDA graphs take is an interval, not a number: engines
find it out by running the model.
"""

from dataclasses import dataclass

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import shown, whole_number
from tinyllm.memory.gpus import GIBIBYTE, Gpu

MOST_PARAMETERS = 10**14
UTILISATION = 0.92  # vLLM 0.32's --gpu-memory-utilization
# Assumed, of one GPU: a small model with short batches, and a large one with full CUDA graphs.
OVERHEAD = (GIBIBYTE // 2, 5 * GIBIBYTE)

# Sixteenths of a bit per parameter, block scales included.
_SIXTEENTHS = {
    "float32": 512,
    "bfloat16": 256,
    "float16": 256,
    "fp8": 128,
    "int8": 128,
    "int4": 66,  # AWQ, GPTQ: a 16-bit scale per 128
    "nvfp4": 72,  # an 8-bit scale per 16
    "mxfp4": 68,  # an 8-bit scale per 32
}
WEIGHT_TYPES = tuple(_SIXTEENTHS)


def weight_bytes(parameters: int, dtype: str) -> int:
    """Bytes of that many parameters, rounded up."""
    whole_number("parameters", parameters, 1, MOST_PARAMETERS)
    if dtype not in _SIXTEENTHS:
        raise MemoryPlanError(
            f"unknown weight type {shown(dtype)}: one of {', '.join(WEIGHT_TYPES)}"
        )
    return -(-parameters * _SIXTEENTHS[dtype] // 128)


@dataclass(frozen=True, slots=True)
class Budget:
    """Memory of one GPU: what the engine may use, what weights take, what is left for the cache."""

    usable_bytes: int
    weight_bytes: int
    pool_low: int  # with the largest overhead assumed; negative pools are 0
    pool_high: int


def budget(gpu: Gpu, weights: int, gpus: int, utilisation: float = UTILISATION) -> Budget:
    """The budget of one of `gpus` GPUs that share the weights evenly."""
    whole_number("gpus", gpus, 1, 65_536)
    if not 0 < utilisation <= 1:
        raise MemoryPlanError(f"utilisation must be above 0 and at most 1, not {utilisation}")
    usable = int(gpu.memory_bytes * utilisation)
    each = -(-weights // gpus)
    low, high = (max(0, usable - each - overhead) for overhead in reversed(OVERHEAD))
    return Budget(usable, each, low, high)
