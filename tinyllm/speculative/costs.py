"""What a round of speculative decoding costs, in steps: tokens of plain decoding.

Plain numbers, measured elsewhere (round_times.py) or assumed; whoever decides or forecasts from
them is deterministic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from tinyllm.errors import SettingError


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs in steps. A round of n proposals costs round(n), a plain step 1.

    Raises SettingError for costs that are no positive numbers or without verification[1].
    """

    c: float  # of drafting one token
    verification: Mapping[int, float]  # n -> T(n) / T(1), of a target call of n tokens
    asking: float = 0.0  # a drafter, and telling it what was decided, whatever it proposes
    per_round: float = 0.0  # what judging proposals costs beside the calls
    per_proposal: float = 0.0  # and for each proposal: its distribution, its verdict
    catch_up: float = 0.0  # of feeding a draft the last proposal of a round that kept all
    # What the first round behind plain steps costs more: the processor's caches hold nothing of it,
    # and the draft reads what these steps made.
    cold: float = 0.0
    reading: float = 0.0
    # Behind a round, plain steps cost more until the caches are theirs again: one in a round whose
    # drafter has nothing to propose, and all together those of a pause. A silent round that is the
    # first behind others is counted with both, which is generous to plain decoding.
    silent: float = 0.0
    resuming: float = 0.0

    def __post_init__(self) -> None:
        if min(self.verification, default=0) != 1:
            raise SettingError("verification costs are by tokens of a call, beginning with 1")
        names = [field.name for field in fields(self) if field.name != "verification"]
        numbers = [getattr(self, name) for name in names]
        # Asked so that nan is refused too.
        if not (all(n >= 0 for n in numbers) and all(n > 0 for n in self.verification.values())):
            raise SettingError(f"costs must be at least 0, and verification above 0, not {self}")

    @property
    def returning(self) -> float:
        """All that the first round behind plain steps costs more."""
        return self.cold + self.reading

    @property
    def longest(self) -> int:
        """The most proposals whose round, and every shorter one, has a known cost."""
        n = 1
        while n + 1 in self.verification:
            n += 1
        return n - 1

    def round(self, n: int) -> float:
        """Of a round that proposes n tokens; a plain step follows where a drafter has none."""
        if not n:
            return 1 + self.asking + self.silent
        judging = self.verification[n + 1] + self.per_round + n * self.per_proposal
        return self.asking + n * self.c + judging
