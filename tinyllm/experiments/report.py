"""All experiments in one run, and the document that sets them beside the article's figures.

`measure` is a generator, one event a row; a Report collects them and is stored as JSON. It
becomes Markdown or one self-contained HTML file. Draws and prints nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

from threadpoolctl import threadpool_limits

from tinyllm.experiments.article import Beside, article, beside
from tinyllm.experiments.catalogue import EXPERIMENTS, reported
from tinyllm.experiments.rows import Row
from tinyllm.experiments.settings import Settings
from tinyllm.machine import this_machine
from tinyllm.quantities import format_count, format_seconds

STORED = Path(__file__).parents[2] / "assets" / "report.json"  # a run that comes with the app
ALL = "all"


@dataclass(frozen=True, slots=True)
class ReportConfig(Settings):
    """What is to be measured: one experiment that has figures of the article, or all of them."""

    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "experiment": (ALL, *dict.fromkeys(figure.experiment for figure in article().figures))
    }

    experiment: str = ALL

    @property
    def names(self) -> tuple[str, ...]:
        """The experiments by name."""
        every: tuple[str, ...] = self.choices["experiment"][1:]
        return every if self.experiment == ALL else (self.experiment,)


@dataclass(frozen=True, slots=True)
class Measured:
    """One row of one experiment, with the seconds since the experiment began."""

    experiment: str
    row: Row
    seconds: float


def measure(names: Iterable[str] | None = None) -> Iterator[Measured]:
    """Run experiments, by default all reported(), one after the other: an event a row.

    BLAS has one thread meanwhile.
    """
    for name in reported() if names is None else names:
        start = perf_counter()
        with threadpool_limits(1, "blas"):
            for row in EXPERIMENTS[name].rows():
                yield Measured(name, row, perf_counter() - start)


@dataclass(slots=True)
class Report:
    """What has been measured so far, when and on what."""

    machine: str = field(default_factory=lambda: str(this_machine()))
    date: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    rows: dict[str, list[Row]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    stopped: bool = False  # before the last experiment's last row

    def take(self, event: Measured) -> bool:
        """Take one row in; each is worth drawing."""
        self.rows.setdefault(event.experiment, []).append(event.row)
        self.seconds[event.experiment] = event.seconds
        return True

    @property
    def comparison(self) -> list[Beside]:
        """Every figure of the article with ours, where it has been measured."""
        return [
            beside(figure, self.rows.get(figure.experiment, ())) for figure in article().figures
        ]

    def of(self, names: Iterable[str]) -> list[Beside]:
        """The comparison for some experiments."""
        wanted = set(names)
        return [item for item in self.comparison if item.figure.experiment in wanted]

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self), indent=1, allow_nan=False) + "\n"

    @classmethod
    def load(cls, path: Path) -> "Report":
        """Read a stored report."""
        return cls(**json.loads(path.read_text("utf-8")))


def comparison_table(comparison: Iterable[Beside]) -> list[Row]:
    """The figures side by side as flat rows, numbers where they are numbers, and as read."""
    return [
        {
            "experiment": item.figure.experiment,
            "figure": item.figure.what,
            "article": _number(item.figure.value),
            "ours": _number(item.ours),
            "ours_low": item.low,
            "ours_high": item.high,
            "unit": item.figure.unit,
            "ours_to_article": item.ratio,
            "article_as_read": quantity(item.figure.value, item.figure.unit),
            "ours_as_read": quantity(item.ours, item.figure.unit),
            "why": item.figure.why,
        }
        for item in comparison
    ]


def _number(value: float | str | None) -> float | None:
    return None if isinstance(value, str | None) else float(value)


def quantity(value: float | str | None, unit: str) -> str:
    """A figure as it is read: seconds as s, ms or µs, whole numbers in full, else four figures."""
    if isinstance(value, str | None):
        return value or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "s":
        return format_seconds(value)
    text = format_count(value) if float(value).is_integer() else f"{value:.4g}"
    return f"{text} {unit}".strip()


def shown(item: Beside) -> tuple[str, str, str, str]:
    """A figure's words, the article's value, ours with its quartiles, and the ratio."""
    figure = item.figure
    ours = quantity(item.ours, figure.unit)
    if item.low is not None and item.high is not None:
        ours += f" ({quantity(item.low, figure.unit)} - {quantity(item.high, figure.unit)})"
    ratio = "-" if item.ratio is None else f"{item.ratio:.3g}"
    return figure.what, quantity(figure.value, figure.unit), ours, ratio
