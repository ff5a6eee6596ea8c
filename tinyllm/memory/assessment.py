"""A choice worked out: logical, reserved and pool, how many requests fit, and what is refused.

The three numbers that public threads mix up, of one GPU (of all together in llama.cpp), for the
requests of one replica. What an engine does not size is said; the logical bytes stand anyway.
"""

from dataclasses import dataclass

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.choice import Choice
from tinyllm.memory.placement import Room, held, room
from tinyllm.memory.served import Served, serve
from tinyllm.memory.subject import Subject


@dataclass(frozen=True, slots=True)
class Assessment:
    """A choice with all that follows from it."""

    choice: Choice
    subject: Subject
    room: Room
    requests: int  # of the replica with most
    kinds: dict[str, int]  # logical bytes of all those requests
    served: Served | None
    unknown: str  # why the engine's part is missing

    @property
    def logical_bytes(self) -> int:
        return sum(self.kinds.values())

    @property
    def fits(self) -> int | None:
        """Requests at full length that fit on all replicas."""
        each = None if self.served is None else self.served.fits
        return None if each is None else each * self.choice.dp

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the server would not start as chosen."""
        return () if self.served is None else self.served.refusals


def assess(choice: Choice, subject: Subject) -> Assessment:
    """Work a choice out; MemoryPlanError for a cache type that the layers cannot have."""
    here = room(choice, subject)
    requests = -(-choice.requests // choice.dp)
    each = held(subject.plan, choice, choice.context)
    kinds = {kind: size * requests for kind, size in each.items()}
    served, unknown = None, ""
    try:
        served = serve(choice, subject, here, requests)
    except MemoryPlanError as error:
        unknown = str(error)
    return Assessment(choice, subject, here, requests, kinds, served, unknown)


def fitting(choice: Choice, subject: Subject) -> int | None:
    """Requests at full length that fit on one replica; None when that is not known."""
    try:
        served = serve(choice, subject, room(choice, subject), 1)
    except MemoryPlanError:
        return None
    return served.fits
