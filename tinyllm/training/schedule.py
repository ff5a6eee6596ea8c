"""What a training run does at each step: learning rate and mix of context lengths.

A plan counts steps, never seconds, so that a resumed run is the same run. It is written to the
checkpoint, and a checkpoint of another plan is refused.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyllm.errors import SettingError
from tinyllm.training.parameters import Array

TOKENS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of a run. SettingError names the one that cannot be."""

    steps: int
    seed: int = 0
    tokens_per_step: int = 2048  # constant, whatever the context length of the step
    tokens_at_once: int = (
        TOKENS_AT_ONCE  # a micro-batch, small enough for its arrays to stay in cache
    )
    peak_rate: float = 4e-3
    final_fraction: float = 0.02  # of the peak, where the cosine ends
    warm_up: float = 0.01  # share of the steps during which the rate climbs
    optimiser: str = "adamw"  # or "muon"
    decay: float = 0.05  # on matrices only
    beta1: float = 0.9
    beta2: float = 0.99
    clip: float = 1.0  # largest norm of the gradient of all parameters together
    lengths: tuple[int, ...] = (128, 256, 512)
    shares_first: tuple[float, ...] = (0.60, 0.25, 0.15)  # of the steps, at the beginning
    shares_last: tuple[float, ...] = (0.20, 0.30, 0.50)  # and at the end: far positions matter

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise SettingError(f"steps must be at least 1, not {self.steps}")
        if self.seed < 0:
            raise SettingError(f"the seed must be at least 0, not {self.seed}")
        if not 0 < self.peak_rate < math.inf:
            raise SettingError(f"the learning rate must be above 0, not {self.peak_rate}")
        if not 0 <= self.decay * self.peak_rate < 1:
            raise SettingError(
                f"the weight decay must be at least 0 and below 1 / the learning rate, "
                f"not {self.decay:g}"
            )
        if self.tokens_per_step < 1 or self.tokens_per_step % self.tokens_at_once:
            raise SettingError(
                f"tokens per step ({self.tokens_per_step}) must be a multiple of tokens at once "
                f"({self.tokens_at_once})"
            )
        if wrong := [length for length in self.lengths if self.tokens_at_once % length]:
            raise SettingError(
                f"context length {wrong[0]} does not divide tokens at once ({self.tokens_at_once})"
            )

    def rate(self, step: int) -> float:
        """Learning rate of a step counted from 0: linear warm-up, then a cosine."""
        climb = max(1, round(self.warm_up * self.steps))
        if step < climb:
            return self.peak_rate * (step + 1) / climb
        progress = (step - climb) / max(1, self.steps - climb)
        height = 0.5 * (1.0 + math.cos(math.pi * progress))
        return self.peak_rate * (self.final_fraction + (1.0 - self.final_fraction) * height)

    def shares(self, step: int) -> Array:
        """Probability of each context length at a step: from shares_first to shares_last."""
        progress = step / self.steps
        first, last = np.array(self.shares_first), np.array(self.shares_last)
        mixed = first + (last - first) * progress
        return np.asarray(mixed / mixed.sum())

    def to_json(self) -> dict[str, Any]:
        """Every number, for the checkpoint and the card."""
        return dataclasses.asdict(self)
