"""The figures of the article that this project grew from, each beside ours.

They are data, in assets/article.json: which experiment, which of its rows, which column, and what
the article measured on its machine. Ours come from rows measured here. Nothing is rounded.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tinyllm.experiments.rows import Row

ARTICLE = Path(__file__).parents[2] / "assets" / "article.json"


@dataclass(frozen=True, slots=True)
class Figure:
    """One published figure and where ours is found."""

    experiment: str
    what: str  # in words, with the row's own numbers
    row: Mapping[str, Any]  # the values by which our row is recognised
    column: str
    value: float | str  # text where the article tells two things at once
    unit: str  # "s", "B", "MFLOP", or "" for counts, ratios and probabilities
    why: str | None  # why ours differs by more than the machine explains


@dataclass(frozen=True, slots=True)
class Article:
    """Where the figures were published, on what they were measured, and the figures."""

    title: str
    machine: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """A figure of the article beside ours."""

    figure: Figure
    ours: float | str | None  # None until it is measured
    low: float | None  # quartiles, where ours is a timing
    high: float | None

    @property
    def ratio(self) -> float | None:
        """Ours / the article's; None without ours, for text, or where the article has zero."""
        theirs = self.figure.value
        if isinstance(theirs, str) or isinstance(self.ours, str | None) or not theirs:
            return None
        return self.ours / theirs


@cache
def article() -> Article:
    """Read from assets, once."""
    data = json.loads(ARTICLE.read_text("utf-8"))
    figures = tuple(
        Figure(
            experiment=table["experiment"],
            what=table["what"].format(**row["row"]),
            row=row["row"],
            column=table["column"],
            value=row["value"],
            unit=table["unit"],
            why=table.get("why"),
        )
        for table in data["tables"]
        for row in table["rows"]
    )
    return Article(data["title"], data["machine"], figures)


def beside(figure: Figure, rows: Iterable[Row]) -> Beside:
    """The figure with ours from the first row that has the wanted column and values."""
    for row in rows:
        if figure.column in row and all(row.get(key) == value for key, value in figure.row.items()):
            return Beside(
                figure,
                row[figure.column],
                row.get(f"{figure.column}_low"),
                row.get(f"{figure.column}_high"),
            )
    return Beside(figure, None, None, None)
