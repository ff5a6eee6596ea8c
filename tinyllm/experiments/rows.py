"""Rows of an experiment as flat objects, the one form for JSON, CSV, tables and the report.

A row is a frozen dataclass of plain values and Spreads. A Spread called x becomes x, x_low and
x_high (its median and quartiles); one called `spread` becomes median, low and high.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from tinyllm.experiments.timing import Spread

Row = dict[str, Any]
_NUMBER, _RANGE, _SENTENCE = 10, 27, 46  # characters of a column, as rows to come are unknown


def flat(row: Any) -> Row:
    """One row as an object of names and plain values."""
    found: Row = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if not isinstance(value, Spread):
            found[field.name] = value
        elif field.name == "spread":
            found |= {"median": value.median, "low": value.low, "high": value.high}
            found["count"] = value.count
        else:
            found[field.name] = value.median
            found |= {f"{field.name}_low": value.low, f"{field.name}_high": value.high}
    return found


def text_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line of aligned text for each row as it comes, under a heading when its names change."""
    heading: list[str] = []
    widths: list[int] = []
    for row in rows:
        shown = text_cells(row)
        if list(shown) != heading:
            if heading:
                yield ""
            heading = list(shown)
            widths = [_width(name, text) for name, text in shown.items()]
            yield _line(heading, widths)
        yield _line(list(shown.values()), widths)


def text_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """A row as text by column; x, x_low and x_high (median, low and high) as x [low - high]."""
    ranges = {name: _range_names(name) for name in row}
    ranges = {name: pair for name, pair in ranges.items() if set(pair) <= set(row)}
    bounds = {bound for pair in ranges.values() for bound in pair}
    shown = {name: _text(value) for name, value in row.items() if name not in bounds}
    for name, (low, high) in ranges.items():
        shown[name] += f" [{_text(row[low])} - {_text(row[high])}]"
    return shown


def _range_names(name: str) -> tuple[str, str]:
    return ("low", "high") if name == "median" else (f"{name}_low", f"{name}_high")


def _width(name: str, text: str) -> int:
    usual = _RANGE if "[" in text else _SENTENCE if " " in text else _NUMBER
    return max(len(name), len(text), usual)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _line(cells: list[str], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
