"""What a round of speculative decoding costs, in steps: tokens of plain decoding.

Plain numbers, measured elsewhere (calibration.py) or assumed; whoever decides or forecasts from
them is deterministic.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tinyllm.errors import SettingError


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs in steps. A round of n proposals costs round(n).

    Raises SettingError for costs that are no positive numbers or without verification[1].
    """

    c: float  # of drafting one token
    verification: Mapping[int, float]  # n -> T(n) / T(1), of a target call of n tokens
    per_round: float = 0.0  # what a round costs beside its calls
    per_proposal: float = 0.0  # and for each proposal: its distribution, its verdict
    catch_up: float = 0.0  # of feeding a draft the last proposal of a round that kept all

    def __post_init__(self) -> None:
        if min(self.verification, default=0) != 1:
            raise SettingError("verification costs are by tokens of a call, beginning with 1")
        numbers = (self.c, self.per_round, self.per_proposal, self.catch_up)
        # Asked so that nan is refused too.
        if not (all(n >= 0 for n in numbers) and all(n > 0 for n in self.verification.values())):
            raise SettingError(f"costs must be at least 0, and verification above 0, not {self}")

    @property
    def longest(self) -> int:
        """The most proposals whose round, and every shorter one, has a known cost."""
        n = 1
        while n + 1 in self.verification:
            n += 1
        return n - 1

    def round(self, n: int) -> float:
        """Of a round that proposes n tokens."""
        return self.verification[n + 1] + self.per_round + n * (self.c + self.per_proposal)
