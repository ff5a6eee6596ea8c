"""What the next better choice saves: a smaller cache type, more GPUs, a shorter reserve.

Each changes one thing and is worked out like any choice; what gains nothing is left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.assessment import Assessment, assess
from tinyllm.memory.choice import LLAMACPP, RANGES, SAME, SGLANG, VLLM, Choice
from tinyllm.memory.dtypes import cache_type

# From larger to smaller; the first that is smaller than the choice's own is tried.
_TYPES = {
    VLLM: ("float32", "bfloat16", "fp8_e4m3", "int4_per_token_head"),
    LLAMACPP: ("float32", "float16", "q8_0", "q4_0"),
    SGLANG: ("bfloat16", "fp8_e4m3", "fp4_e2m1"),
}
_FEWER_IN_FLIGHT = 2_048
_VECTOR = 256  # elements by which types are compared: whole blocks of every type


@dataclass(frozen=True, slots=True)
class Saving:
    """Another choice, and what it gains for the same requests."""

    what: str
    choice: Choice
    saved_bytes: int  # of what is reserved where the figures are of; negative when it costs more
    fits: int | None  # requests at full length, on all replicas
    more: int | None  # of them than before


def savings(now: Assessment) -> tuple[Saving, ...]:
    """One for each kind of change that gains something, in the order of what it costs."""
    found = []
    for what, choice in _changes(now.choice, now):
        try:
            then = assess(choice, now.subject)
        except MemoryPlanError:  # a type that these layers cannot have
            continue
        saving = _saving(what, now, then)
        if saving is not None:
            found.append(saving)
    return tuple(found)


def _saving(what: str, now: Assessment, then: Assessment) -> Saving | None:
    """None when nothing is gained or the engine says nothing of it."""
    if (then.served is None) != (now.served is None):
        return None
    before, after = (
        one.logical_bytes if one.served is None else one.served.reserved_bytes
        for one in (now, then)
    )
    more = None if now.fits is None or then.fits is None else then.fits - now.fits
    if after >= before and (more or 0) <= 0:
        return None
    return Saving(what, then.choice, before - after, then.fits, more)


def _changes(choice: Choice, now: Assessment) -> Iterator[tuple[str, Choice]]:
    """A sentence and the choice it describes."""
    smaller = _smaller_type(choice)
    if smaller is not None:
        yield f"KV cache in {smaller}", replace(choice, kv_type=smaller, v_type=SAME)
    has_windows = bool({"window", "chunk"} & set(now.kinds))
    if choice.engine == VLLM and has_windows:
        batched = choice.batched or now.room.device.batched_tokens
        if batched > _FEWER_IN_FLIGHT:
            what = f"shorter reserve of windows: --max-num-batched-tokens {_FEWER_IN_FLIGHT:,}"
            yield what, replace(choice, batched=_FEWER_IN_FLIGHT)
    if choice.engine == LLAMACPP and not choice.kv_unified:
        yield "slots that share one cache (-kvu)", replace(choice, kv_unified=True)
    if "state" in now.kinds and choice.engine == VLLM and choice.prefix_caching:
        yield "no prefix caching: one state block a request", replace(choice, prefix_caching=False)
    half = choice.context // 2
    if half >= RANGES["context"][0]:
        yield f"requests of at most {half:,} tokens", replace(choice, context=half)
    if 2 * choice.tp <= RANGES["tp"][1]:
        what = f"twice the GPUs: tensor parallel {2 * choice.tp}"
        yield what, replace(choice, tp=2 * choice.tp)


def _smaller_type(choice: Choice) -> str | None:
    """The engine's next smaller cache type; None for the smallest."""
    own = _vector_bytes(choice.key_type)
    return next((name for name in _TYPES[choice.engine] if _vector_bytes(name) < own), None)


def _vector_bytes(name: str) -> int:
    return cache_type(name).vector_bytes(_VECTOR)
