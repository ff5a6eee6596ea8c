"""Where a choice's memory is: on one GPU, or on all that llama.cpp divides the layers among.

Weights are divided evenly; what activations and graphs take is an interval, so the room for the
cache is one too, unless the engine's own figure was given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.choice import LLAMACPP, PUBLISHED, Choice
from tinyllm.memory.dtypes import CacheTypes
from tinyllm.memory.engines.shards import pipeline_stages, token_bytes
from tinyllm.memory.gpus import GIBIBYTE, Gpu, gpu
from tinyllm.memory.layers import Attention, Layer, State
from tinyllm.memory.subject import Subject
from tinyllm.memory.weights import WEIGHT_TYPES, budget, weight_bytes


@dataclass(frozen=True, slots=True)
class Room:
    """Memory of one GPU, or of `gpus` together; pools are None while the weights are unknown."""

    device: Gpu
    gpus: int  # that the figures are of
    memory_bytes: int
    usable_bytes: int
    weight_bytes: int | None
    pool_low: int | None  # with the largest overhead assumed
    pool_high: int | None
    given: bool  # the pool is the engine's own figure


def room(choice: Choice, subject: Subject) -> Room:
    """What weights leave of the GPUs of one replica."""
    device, gpus = gpu(choice.gpu), choice.tp * choice.pp
    together = gpus if choice.engine == LLAMACPP else 1
    total = _weights(choice, subject)
    own = budget(device, total or 0, gpus, choice.utilisation)
    weights = None if total is None else together * own.weight_bytes
    low = None if total is None else together * own.pool_low
    high = None if total is None else together * own.pool_high
    if choice.pool_gib:
        low = high = together * int(choice.pool_gib * GIBIBYTE)
    memory, usable = together * device.memory_bytes, together * own.usable_bytes
    return Room(device, together, memory, usable, weights, low, high, bool(choice.pool_gib))


def _weights(choice: Choice, subject: Subject) -> int | None:
    """Bytes of all weights, None when nobody said how many parameters there are."""
    parameters = choice.parameters or subject.parameters
    published = subject.dtype if subject.dtype in WEIGHT_TYPES else "bfloat16"
    dtype = str(published) if choice.weights == PUBLISHED else choice.weights
    return None if parameters is None else weight_bytes(parameters, dtype)


def types_of(choice: Choice) -> CacheTypes:
    """The cache types; only llama.cpp stores values otherwise than keys."""
    values = choice.value_type if choice.engine == LLAMACPP else choice.key_type
    return CacheTypes.named(choice.key_type, choice.key_type, values)


def ranks_of(choice: Choice) -> int:
    """GPUs that divide the heads of each layer; llama.cpp divides layers."""
    return 1 if choice.engine == LLAMACPP else choice.tp


def held(plan: CachePlan, choice: Choice, tokens: int) -> dict[str, int]:
    """Logical bytes of one sequence by kind of layer, where the choice's figures are of.

    On one GPU of several: its share of the heads, on the pipeline stage that holds most.
    """
    types, ranks = types_of(choice), ranks_of(choice)
    sizes = [on_one_gpu(entry.layer, types, ranks, tokens) for entry in plan.entries]
    if choice.pp == 1 or choice.engine == LLAMACPP:
        return _sums(plan, sizes)
    stages = pipeline_stages(plan.layer_count, choice.pp)
    return max((_sums(plan, sizes, stage) for stage in stages), key=lambda sums: sum(sums.values()))


def _sums(plan: CachePlan, sizes: Sequence[int], stage: range | None = None) -> dict[str, int]:
    """Bytes by kind, given those of one layer of each entry; of one stage's layers alone."""
    sums: dict[str, int] = {}
    for entry, size in zip(plan.entries, sizes, strict=True):
        mine = entry.layers if stage is None else [one for one in entry.layers if one in stage]
        sums[entry.kind] = sums.get(entry.kind, 0) + len(mine) * size
    return sums


def on_one_gpu(layer: Layer, types: CacheTypes, ranks: int, tokens: int) -> int:
    """Logical bytes of one layer of one sequence on one of `ranks` tensor-parallel GPUs."""
    if isinstance(layer, Attention):
        return layer.kept(tokens) * sum(token_bytes(layer, types, ranks))
    return layer.state_bytes(ranks) if isinstance(layer, State) else layer.bytes(tokens, types)
