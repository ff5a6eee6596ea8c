"""What a forecast was made of, what was measured beside it, and the rows these amount to.

Takes the events of experiments/forecast.py one by one; measures nothing itself.
"""

from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

from tinyllm.experiments.timing import Spread
from tinyllm.speculative import AUTO, Costs
from tinyllm.speculative.profile import Expected
from tinyllm.speculative.round_times import Turn, costs_of

KS = tuple(range(1, 9))
K = int | Literal["auto"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Rounds timed behind one prompt, and what beginning costs, in steps."""

    turns: tuple[Turn, ...]
    plain_start: float  # caches, prefill and first token of plain decoding
    start: float  # caches and prefills of a speculative run


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What each k is expected to do along one text of the target."""

    by_k: dict[int, Expected]


@dataclass(frozen=True, slots=True)
class Measured:
    """One prompt decoded at one k, and plainly before."""

    k: K
    plain: float  # seconds
    seconds: float
    calls: int  # of the target
    emitted: int  # tokens


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """One k of one pair."""

    target: str
    drafter: str
    temperature: float
    k: K
    alpha: float | None = None  # accepted / tested, as expected
    call_cost: float | None = None  # T(k + 1), in steps
    tokens_per_call: float | None = None  # expected
    tokens_per_call_measured: float | None = None
    flat: float | None = None  # speed-up if checking cost one step, and the loop nothing
    forecast: float | None = None  # of the speed-up, at the measured costs
    speedup: Spread | None = None  # of pairs: a prompt's plain and speculative decoding, in turn
    ratio: float | None = None  # forecast / measured
    best: bool = False  # of the forecasts


@dataclass(slots=True)
class ForecastRecord:
    """What was measured so far; `rows` says what it amounts to."""

    turns: list[Turn] = field(default_factory=list)
    plain_starts: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    foreseen: list[Foreseen] = field(default_factory=list)
    measured: dict[K, list[Measured]] = field(default_factory=dict)

    def take(self, event: Calibration | Foreseen | Measured) -> bool:
        """Take one event in; True for what moves a point."""
        if isinstance(event, Calibration):
            self.turns += event.turns
            self.plain_starts.append(event.plain_start)
            self.starts.append(event.start)
        elif isinstance(event, Foreseen):
            self.foreseen.append(event)
        else:
            self.measured.setdefault(event.k, []).append(event)
        return not isinstance(event, Calibration)

    @property
    def costs(self) -> Costs:
        """Of all rounds timed so far."""
        return costs_of(self.turns)

    def tokens_per_call(self, k: int) -> float:
        """As expected over all texts so far."""
        runs = [one.by_k[k] for one in self.foreseen]
        return sum(run.tokens for run in runs) / sum(run.rounds for run in runs)

    def alpha(self, k: int) -> float | None:
        """accepted / tested as expected over all texts so far."""
        runs = [one.by_k[k] for one in self.foreseen]
        tested = sum(sum(run.tested_at) for run in runs)
        return sum(sum(run.accepted_at) for run in runs) / tested if tested else None

    def survival(self, k: int) -> float:
        """Share of the rounds with proposals that are expected to keep them all."""
        runs = [one.by_k[k] for one in self.foreseen]
        asked = sum(run.rounds - run.rounds_of[0] for run in runs)
        return sum(run.kept_all for run in runs) / asked if asked else 0.0

    def conditional(self, k: int) -> list[float | None]:
        """By place of a proposal: accepted / tested, as expected over all texts so far."""
        runs = [one.by_k[k] for one in self.foreseen]
        tested = [sum(run.tested_at[i] for run in runs) for i in range(k)]
        accepted = [sum(run.accepted_at[i] for run in runs) for i in range(k)]
        return [a / b if b else None for a, b in zip(accepted, tested, strict=True)]

    def flat(self, k: int, costs: Costs) -> float:
        """Theorem 3.8's ideal: every call of the target costs one step, and the loop nothing."""
        return self._speedup(k, Costs(costs.c, dict.fromkeys(range(1, k + 2), 1.0)), 0.0, 0.0)

    def forecast(self, k: int, costs: Costs) -> float:
        """The median speed-up of a text, at these costs."""
        plain_start = median(self.plain_starts) - 1  # its first token is one of the text's
        return self._speedup(k, costs, plain_start, median(self.starts))

    def _speedup(self, k: int, costs: Costs, plain_start: float, start: float) -> float:
        runs = [one.by_k[k] for one in self.foreseen]
        start += costs.cold  # the first round
        return median((run.tokens + plain_start) / (run.steps(costs) + start) for run in runs)

    def speedup(self, k: K) -> Spread | None:
        """As measured so far."""
        runs = self.measured.get(k, [])
        return Spread.of(run.plain / run.seconds for run in runs) if runs else None

    def rows(self, target: str, drafter: str, temperature: float) -> list[ForecastRow]:
        """Every k, then k chosen as it goes where it was measured. Nothing before a text."""
        if not (self.turns and self.foreseen):
            return []
        costs = self.costs
        forecasts = {k: self.forecast(k, costs) for k in KS}
        best = max(forecasts, key=forecasts.__getitem__)
        pair: dict[str, Any] = {"target": target, "drafter": drafter, "temperature": temperature}
        rows = []
        for k in KS:
            speedup = self.speedup(k)
            row = ForecastRow(
                **pair,
                k=k,
                alpha=self.alpha(k),
                call_cost=costs.verification[k + 1],
                tokens_per_call=self.tokens_per_call(k),
                tokens_per_call_measured=self.counted(k),
                flat=self.flat(k, costs),
                forecast=forecasts[k],
                speedup=speedup,
                ratio=forecasts[k] / speedup.median if speedup else None,
                best=k == best,
            )
            rows.append(row)
        if AUTO in self.measured:
            counted, speedup = self.counted(AUTO), self.speedup(AUTO)
            rows.append(
                ForecastRow(**pair, k=AUTO, tokens_per_call_measured=counted, speedup=speedup)
            )
        return rows

    def counted(self, k: K) -> float | None:
        """Tokens per target call of the measured runs."""
        runs = self.measured.get(k, [])
        calls = sum(run.calls for run in runs)
        return sum(run.emitted for run in runs) / calls if calls else None
