"""Clocks and medians: how every experiment times the engine.

The engine reads no clock. Here perf_counter runs around next(), once per event, or around a block
of calls, and results are medians with their quartiles. What is compared is measured in turn, never
one after the other.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter
from typing import TypeVar

Event = TypeVar("Event")


def timed(
    begin: Callable[[], Iterable[Event]], clock: Callable[[], float] = perf_counter
) -> Iterator[tuple[Event, float]]:
    """Each event with the seconds spent waiting for it; the consumer's own time is left out.

    What `begin` does before its first event (caches, a drafter's prefill) counts to that event.
    """
    start = clock()
    iterator = iter(begin())
    while True:
        try:
            event = next(iterator)
        except StopIteration:
            return
        yield event, clock() - start
        start = clock()


@dataclass(frozen=True, slots=True)
class Case:
    """One of the things compared: a call that leaves everything as it was."""

    call: Callable[[], object]
    calls: int = 1  # made one after the other in a turn, and timed together


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a measurement is, where its parts give no rows of their own."""

    name: str  # of what is measured
    part: int  # under way, from 0
    parts: int


def in_turn(cases: Mapping[str, Case], turns: int, warm_up: int = 0) -> dict[str, list[float]]:
    """Seconds a call, one figure per case and turn; the first `warm_up` turns are not counted."""
    steps = steps_in_turn("", cases, turns, warm_up)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            measured: dict[str, list[float]] = end.value
            return measured


def steps_in_turn(
    name: str, cases: Mapping[str, Case], turns: int, warm_up: int = 0
) -> Generator[Progress, None, dict[str, list[float]]]:
    """The same with a pause before each case's calls: slow ones can be watched, and stopped."""
    seconds: dict[str, list[float]] = {case: [] for case in cases}
    parts = (turns + warm_up) * len(cases)
    order = [(turn, case) for turn in range(-warm_up, turns) for case in cases]
    for part, (turn, key) in enumerate(order):
        yield Progress(name, part, parts)
        case = cases[key]
        start = perf_counter()
        for _ in range(case.calls):
            case.call()
        spent = (perf_counter() - start) / case.calls
        if turn >= 0:
            seconds[key].append(spent)
    return seconds


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
