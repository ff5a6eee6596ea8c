"""All that the memory calculator shows of one choice, worked out once for the page."""

from dataclasses import dataclass

from tinyllm.memory.assessment import Assessment
from tinyllm.memory.curves import Capacity, Growth
from tinyllm.memory.links import Pinned
from tinyllm.memory.savings import Saving


@dataclass(frozen=True, slots=True)
class Shown:
    """All that the page shows of one choice."""

    pinned: Pinned
    assessment: Assessment
    growth: Growth
    capacity: Capacity
    savings: tuple[Saving, ...]
