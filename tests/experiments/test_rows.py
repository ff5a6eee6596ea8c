"""Rows as flat objects and as text."""

from collections.abc import Iterator
from dataclasses import dataclass

from tinyllm.experiments.rows import Row, flat, text_lines
from tinyllm.experiments.timing import Spread


@dataclass(frozen=True, slots=True)
class Timed:
    name: str
    seconds: Spread
    same: bool | None


@dataclass(frozen=True, slots=True)
class Figure:
    unit: str
    spread: Spread


def test_a_spread_becomes_its_median_and_quartiles() -> None:
    row = flat(Timed("step", Spread(0.5, 0.25, 0.75, 9), True))
    assert row == {
        "name": "step",
        "seconds": 0.5,
        "seconds_low": 0.25,
        "seconds_high": 0.75,
        "same": True,
    }
    row = flat(Figure("ms", Spread(2.0, 1.0, 3.0, 7)))
    assert row == {"unit": "ms", "median": 2.0, "low": 1.0, "high": 3.0, "count": 7}


def test_lines_stand_under_each_other_and_a_range_beside_its_median() -> None:
    rows = [
        flat(Timed("one", Spread(0.5, 0.25, 0.75, 9), True)),
        flat(Timed("two", Spread(1 / 3, 0.25, 0.75, 9), None)),
        flat(Figure("ms", Spread(2.0, 1.0, 3.0, 7))),
    ]
    heading, first, second, gap, other, third = text_lines(rows)
    assert heading.split() == ["name", "seconds", "same"]
    assert first.split() == ["one", "0.5", "[0.25", "-", "0.75]", "yes"]
    assert second.split() == ["two", "0.3333", "[0.25", "-", "0.75]", "-"]
    assert heading.index("seconds") == first.index("0.5") == second.index("0.3333")
    assert gap == ""
    assert other.split() == ["unit", "median", "count"]
    assert third.split() == ["ms", "2", "[1", "-", "3]", "7"]


def test_a_line_comes_before_the_next_row_is_asked_for() -> None:
    def rows() -> Iterator[Row]:
        yield {"a": 1}
        raise AssertionError("asked for too early")

    lines = text_lines(rows())
    assert [next(lines), next(lines)] == ["a", "1"]
