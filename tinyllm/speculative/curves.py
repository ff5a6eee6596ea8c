"""What a target call of n tokens a sequence may cost, in steps of one: curves to plan with.

Flat is what the papers' speed-ups assume, linear a measured slope, and Roofline what a GPU's
memory and arithmetic allow a batch of sequences at best. Williams et al. 2009 for the roofline.
"""

from collections.abc import Callable
from dataclasses import dataclass

Curve = Callable[[int], float]  # n -> T(n) / T(1)


def flat(n: int) -> float:
    """One step, whatever is checked."""
    return 1.0


def linear(slope: float) -> Curve:
    """A step, and `slope` of one for each further token."""
    return lambda n: 1 + slope * (n - 1)


@dataclass(frozen=True, slots=True)
class Roofline:
    """A decode step that is as fast as memory and arithmetic allow, whichever takes longer.

    Weights are read once a call and the cache once a sequence; a token takes two operations a
    parameter. The operations of attention and the time between kernels are left out.
    """

    parameters: float
    weight_bytes: float
    cache_bytes: float  # that one sequence reads
    bytes_per_second: float
    operations_per_second: float

    def seconds(self, batch: int, n: int = 1) -> float:
        """Of a call with n tokens of each of `batch` sequences."""
        read = (self.weight_bytes + batch * self.cache_bytes) / self.bytes_per_second
        worked = 2 * self.parameters * batch * n / self.operations_per_second
        return max(read, worked)

    def curve(self, batch: int) -> Curve:
        """In steps of the same batch."""
        step = self.seconds(batch)
        return lambda n: self.seconds(batch, n) / step

    @property
    def tokens_for_nothing(self) -> float:
        """Tokens of a call, of one sequence or many, that arithmetic can do while weights come."""
        return (
            self.weight_bytes
            / self.bytes_per_second
            * self.operations_per_second
            / (2 * self.parameters)
        )
