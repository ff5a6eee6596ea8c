"""Clocks and medians: how every experiment times the engine.

The engine reads no clock. Here perf_counter runs around next(), once per event, and results are
medians with their quartiles. What is compared is measured in turn, never one after the other.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter
from typing import TypeVar

Event = TypeVar("Event")


def timed(begin: Callable[[], Iterable[Event]]) -> Iterator[tuple[Event, float]]:
    """Each event with the seconds spent waiting for it; the consumer's own time is left out.

    What `begin` does before its first event (caches, a drafter's prefill) counts to that event.
    """
    start = perf_counter()
    iterator = iter(begin())
    while True:
        try:
            event = next(iterator)
        except StopIteration:
            return
        yield event, perf_counter() - start
        start = perf_counter()


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its lower and upper quartile, and the number of measurements."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Of at least one value; with fewer than three the quartiles are the extremes."""
        ordered = sorted(values)
        if len(ordered) < 3:
            return cls(median(ordered), ordered[0], ordered[-1], len(ordered))
        low, middle, high = quantiles(ordered, n=4, method="inclusive")
        return cls(middle, low, high, len(ordered))
