"""What one token leaves on one of several GPUs.

KV heads are divided among the GPUs and repeated when there are fewer than GPUs; a latent and an
index key are whole on each. vLLM and SGLang do the same. Pipeline stages divide layers.
"""

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.dtypes import CacheTypes
from tinyllm.memory.layers import Attention, Index, Latent, Layer


def heads_per_gpu(heads: int, ranks: int) -> int:
    """KV heads that each of `ranks` GPUs keeps."""
    return max(1, heads // ranks)


def token_bytes(layer: Layer, types: CacheTypes, ranks: int) -> tuple[int, int]:
    """Bytes of keys and of values; a latent counts as keys, a state as nothing."""
    if isinstance(layer, Attention):
        return layer.sides(types, heads_per_gpu(layer.heads, ranks))
    if isinstance(layer, Latent):
        return layer.row_bytes(types), 0
    if isinstance(layer, Index):
        return types.key.index_bytes(layer.dim), 0
    return 0, 0


def pipeline_stages(count: int, stages: int) -> list[range]:
    """Layers of each pipeline stage; what does not divide goes to the last stages but one."""
    if stages > count:
        raise MemoryPlanError(
            f"pipeline_parallel must be at most the number of layers, {count}, not {stages}"
        )
    sizes = [count // stages] * stages
    for turn in range(count % stages):
        sizes[-2 - turn] += 1
    ends = [sum(sizes[: stage + 1]) for stage in range(stages)]
    return [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
