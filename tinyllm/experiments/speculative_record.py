"""What a watched run of speculative decoding has given: rounds, speed, and what every k counted.

Takes the events of experiments/speculative.py one by one; measures nothing itself.
"""

from dataclasses import dataclass, field

from tinyllm.experiments.timing import Progress, Spread
from tinyllm.speculative import Counters, Round
from tinyllm.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Choice:
    """One token at one position: its probability under the target and under the drafter."""

    token: int
    p: float
    q: float | None  # None where nothing was proposed (the bonus token)


@dataclass(frozen=True, slots=True)
class RoundRow:
    """One round, the counters up to and with it, and the bytes of the target's cache.

    Of p and q the top of every place is kept: whole, a run's would be a million numbers and more.
    """

    round: Round  # without p and q
    top: tuple[tuple[Choice, ...], ...]  # of every place of the round
    counters: Counters
    made: int  # tokens made so far
    peak_bytes: int  # before the rejected tokens are forgotten
    used_bytes: int  # after


@dataclass(frozen=True, slots=True)
class Comparison:
    """Speculative against plain decoding of the same length, measured in turn."""

    speedup: Spread  # of pairs of runs measured next to each other
    plain: float  # tokens a second of the middle pair
    speculative: float


@dataclass(frozen=True, slots=True)
class KPoint:
    """What one k gave, counted over one run or several."""

    k: int
    counters: Counters
    runs: int


@dataclass(slots=True)
class Record:
    """What a watched run has given so far; `take` takes the events of `watch` one by one."""

    tokenizer: Tokenizer
    rows: list[RoundRow] = field(default_factory=list)
    points: dict[int, KPoint] = field(default_factory=dict)
    comparison: Comparison | None = None
    progress: Progress | None = None

    def take(self, event: RoundRow | KPoint | Comparison | Progress) -> bool:
        """Take one event in; True for a round, which is worth drawing by itself."""
        self.progress = event if isinstance(event, Progress) else None
        if isinstance(event, RoundRow):
            self.rows.append(event)
            return True
        if isinstance(event, KPoint):
            self.points[event.k] = event
        elif isinstance(event, Comparison):
            self.comparison = event
        return False

    def restarted(self) -> "Record":
        """Without the rounds; points and speed stay until they are measured anew."""
        return Record(self.tokenizer, [], dict(self.points), self.comparison)

    @property
    def counters(self) -> Counters:
        """The counters of the rounds so far."""
        return self.rows[-1].counters if self.rows else Counters()

    @property
    def pooled_alpha(self) -> float | None:
        """Accepted / tested over the runs at every k."""
        tested = sum(point.counters.tested for point in self.points.values())
        accepted = sum(point.counters.accepted for point in self.points.values())
        return accepted / tested if tested else None

    @property
    def runs_per_k(self) -> int:
        """Runs behind each point."""
        return max((point.runs for point in self.points.values()), default=0)

    @property
    def most_bytes(self) -> int:
        """The most the target's cache held, rejected tokens included."""
        return max((row.peak_bytes for row in self.rows), default=0)


def rounds_table(record: Record) -> list[dict[str, object]]:
    """The rounds as plain rows, for export."""
    return [
        {
            "round": number + 1,
            "position": row.round.position,
            "proposed": record.tokenizer.decode(row.round.proposed),
            "accepted": row.round.accepted,
            "emitted": record.tokenizer.decode(row.round.tokens),
            "closing": row.round.closing,
            "acceptance_rate": row.counters.acceptance_rate,
            "tokens_per_call": row.counters.tokens_per_call,
            "cache_bytes_peak": row.peak_bytes,
            "cache_bytes": row.used_bytes,
        }
        for number, row in enumerate(record.rows)
    ]


def points_table(record: Record) -> list[dict[str, object]]:
    """What was counted at every k, for export."""
    return [
        {
            "k": point.k,
            "rounds": point.counters.drafts,
            "proposed": point.counters.proposed,
            "tested": point.counters.tested,
            "accepted": point.counters.accepted,
            "acceptance_rate": point.counters.acceptance_rate,
            "tokens_per_call": point.counters.tokens_per_call,
        }
        for point in record.points.values()
    ]
