"""The two curves of a choice: memory against context, and requests that fit against context.

Points are chosen so that bends of windows are among them; nothing is drawn here.
"""

import math
from dataclasses import dataclass, replace

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.assessment import Assessment, fitting
from tinyllm.memory.choice import RANGES, Choice
from tinyllm.memory.placement import held
from tinyllm.memory.served import serve
from tinyllm.memory.subject import Subject

_POINTS = 24
_SHORTEST = 256
_LONGEST = 2**20  # that is drawn, unless the choice is longer


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes at each number of tokens, for the requests of a choice."""

    tokens: tuple[int, ...]
    kinds: dict[str, tuple[int, ...]]  # logical, by kind of layer
    reserved: tuple[int | None, ...]  # by the engine; None where it does not say


@dataclass(frozen=True, slots=True)
class Capacity:
    """Requests of that many tokens that fit at once, on all replicas."""

    tokens: tuple[int, ...]
    requests: tuple[int | None, ...]


def growth(assessment: Assessment, longest: int | None = None) -> Growth:
    """From no tokens to about twice the chosen context, or twice another."""
    choice, plan = assessment.choice, assessment.subject.plan
    wanted = 1.25 * (longest or choice.context)
    end = min(2 ** math.ceil(math.log2(wanted)), int(RANGES["context"][1]))
    bends = {bend for entry in plan.entries for bend in entry.layer.bends if bend < end}
    steps = {end * step // _POINTS for step in range(_POINTS + 1)}
    tokens = sorted(steps | {choice.context} | set(sorted(bends)[:8]))
    rows = [held(plan, choice, one) for one in tokens]
    kinds = {
        kind: tuple(row[kind] * assessment.requests for row in rows) for kind in assessment.kinds
    }
    reserved = tuple(_reserved(assessment, one) for one in tokens)
    return Growth(tuple(tokens), kinds, reserved)


def _reserved(assessment: Assessment, tokens: int) -> int | None:
    low, _ = RANGES["context"]
    if assessment.served is None or tokens < low:
        return None
    choice = replace(assessment.choice, context=tokens)
    try:
        here = replace(assessment.room, pool_low=None)  # what is reserved needs no pool
        return serve(choice, assessment.subject, here, assessment.requests).reserved_bytes
    except MemoryPlanError:
        return None


def capacity(choice: Choice, subject: Subject) -> Capacity:
    """Two points for each doubling of the context."""
    top = max(choice.context, min(subject.longest or 2**17, _LONGEST), 4_096)
    steps = math.ceil(2 * math.log2(top / _SHORTEST))
    tokens = sorted({round(_SHORTEST * 2 ** (step / 2)) for step in range(steps + 1)})
    tokens = sorted({min(one, top) for one in tokens} | {choice.context})
    fits = [fitting(replace(choice, context=one), subject) for one in tokens]
    return Capacity(tuple(tokens), tuple(n if n is None else n * choice.dp for n in fits))
