"""Every outcome of a run with its exact probability: a sampler that takes all branches.

A run is repeated with a script of choices; where the script ends, the sampler takes the first
possible choice and notes the others, which become scripts of their own. The run itself is the
real one: only the uniform numbers are replaced.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable
from math import fsum
from typing import TypeVar

import numpy as np

from tinyllm.sampling import Distribution

Outcome = TypeVar("Outcome", bound=Hashable)


class ScriptedSampler:
    """Follows a script, then always takes the first possible choice."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self.script = script
        self.taken: list[int] = []
        self.weight = 1.0
        self.alternatives: list[tuple[int, ...]] = []

    def draw(self, p: Distribution) -> int:
        """One branch a token that can come."""
        return self._choose(p)

    def accept(self, probability: float) -> bool:
        """One branch for yes and one for no, where both can be."""
        return bool(self._choose(np.array([1 - probability, probability])))

    def _choose(self, p: Distribution) -> int:
        step = len(self.taken)
        if step < len(self.script):
            choice = self.script[step]
        else:
            choice, *others = np.flatnonzero(p).tolist()
            self.alternatives += [(*self.taken, other) for other in others]
        self.taken.append(choice)
        self.weight *= float(p[choice])
        return choice


def law(run: Callable[[ScriptedSampler], Outcome]) -> dict[Outcome, float]:
    """The law of what `run` returns, over all choices of its sampler."""
    weights: dict[Outcome, list[float]] = defaultdict(list)
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        sampler = ScriptedSampler(scripts.pop())
        outcome = run(sampler)
        weights[outcome].append(sampler.weight)
        scripts += sampler.alternatives
    return {outcome: fsum(parts) for outcome, parts in weights.items()}


def largest_difference(one: dict[Outcome, float], other: dict[Outcome, float]) -> float:
    """Between the probabilities that two laws give an outcome."""
    return max(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one | other)
