"""Counters of a speculative run, one schema; names as in tinyllm's vocabulary.

accepted / proposed, accepted / tested and the survival by position are different numbers and
are often confused: a proposal behind a rejection is proposed but never tested.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tinyllm.speculative.decoding import Round


@dataclass(frozen=True, slots=True)
class Counters:
    """Sums over rounds. A ratio with nothing below the line is None."""

    drafts: int = 0  # D: rounds, each one target call
    proposed: int = 0  # P
    accepted: int = 0  # A
    tested: int = 0  # proposals the rule was asked about
    emitted: int = 0  # tokens made
    accepted_at: tuple[int, ...] = ()  # a_i: rounds whose proposal i was accepted
    tested_at: tuple[int, ...] = ()  # rounds whose proposal i was tested
    proposed_at: tuple[int, ...] = ()  # rounds that had a proposal i

    def add(self, event: Round) -> "Counters":
        """With one round more."""
        return Counters(
            drafts=self.drafts + 1,
            proposed=self.proposed + len(event.proposed),
            accepted=self.accepted + event.accepted,
            tested=self.tested + event.tested,
            emitted=self.emitted + len(event.tokens),
            accepted_at=_count_up_to(self.accepted_at, event.accepted, len(event.proposed)),
            tested_at=_count_up_to(self.tested_at, event.tested, len(event.proposed)),
            proposed_at=_count_up_to(self.proposed_at, len(event.proposed), len(event.proposed)),
        )

    @classmethod
    def of(cls, events: Iterable[Round]) -> "Counters":
        """Of a whole run."""
        counters = cls()
        for event in events:
            counters = counters.add(event)
        return counters

    @property
    def tokens_per_call(self) -> float | None:
        """Tokens per target call; 1 + A / D unless a stop token cut a round short."""
        return _ratio(self.emitted, self.drafts)

    @property
    def acceptance_rate(self) -> float | None:
        """alpha: accepted / tested."""
        return _ratio(self.accepted, self.tested)

    @property
    def accepted_per_proposed(self) -> float | None:
        """A / P; falls with k even at a constant alpha."""
        return _ratio(self.accepted, self.proposed)

    @property
    def survival(self) -> tuple[float | None, ...]:
        """a_i / rounds that proposed i: how often proposal i was reached and accepted."""
        pairs = zip(self.accepted_at, self.proposed_at, strict=True)
        return tuple(_ratio(accepted, proposed) for accepted, proposed in pairs)

    @property
    def conditional(self) -> tuple[float | None, ...]:
        """a_i / rounds that tested i: acceptance of i once it was reached.

        a_i / a_(i-1) where no round ends early: i is tested when i - 1 was accepted.
        """
        pairs = zip(self.accepted_at, self.tested_at, strict=True)
        return tuple(_ratio(accepted, tested) for accepted, tested in pairs)


def _count_up_to(counts: tuple[int, ...], n: int, places: int) -> tuple[int, ...]:
    """Counts with 1 more at each of the first n places, grown to `places` when shorter."""
    grown = counts + (0,) * (places - len(counts))
    return tuple(count + (i < n) for i, count in enumerate(grown))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
