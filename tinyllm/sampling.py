"""From logits to a token: the sampling settings, the distribution they make, and the draws.

The distribution is float64 and sums to one. All randomness goes through a Sampler, so a test
can script or enumerate every draw of a real run. Knows nothing of models or caches.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tinyllm.errors import SettingError, whole_number
from tinyllm.layers import Array

Distribution = NDArray[np.float64]

MAX_TEMPERATURE = 100.0


@dataclass(frozen=True, slots=True)
class Sampling:
    """Temperature, then top-k, then top-p, in the order of Hugging Face's transformers.

    temperature 0 takes the most probable token; top_k None and top_p 1 leave all tokens in.
    Raises SettingError, naming the field, for a value outside its range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= MAX_TEMPERATURE:
            raise SettingError(
                f"temperature must lie in 0..{MAX_TEMPERATURE:g}, not {self.temperature}"
            )
        if self.top_k is not None:
            whole_number(self.top_k, "top_k", 1)
        if not 0 < self.top_p <= 1:
            raise SettingError(f"top_p must be above 0 and at most 1, not {self.top_p}")

    def distribution(self, logits: Array) -> Distribution:
        """(..., V) logits -> (..., V) probabilities in float64.

        Ties: at temperature 0 the lowest id wins; top-k and top-p keep the lower id first.
        """
        if self.temperature == 0:
            best = logits.argmax(axis=-1)
            one_hot: Distribution = np.zeros(logits.shape)
            np.put_along_axis(one_hot, best[..., None], 1.0, axis=-1)
            return one_hot
        logits = logits.astype(np.float64)
        # Shifted before the division: a tiny temperature must not overflow to inf - inf.
        logits -= logits.max(axis=-1, keepdims=True)
        logits /= self.temperature
        p: Distribution = np.exp(logits, logits)
        p /= p.sum(axis=-1, keepdims=True)
        if (self.top_k is not None and self.top_k < p.shape[-1]) or self.top_p < 1:
            p *= self._kept(p)
            p /= p.sum(axis=-1, keepdims=True)
        return p

    def _kept(self, p: Distribution) -> NDArray[np.bool_]:
        """Which tokens top-k and top-p leave in; at least the most probable one."""
        order = np.argsort(-p, axis=-1, kind="stable")
        sorted_p = np.take_along_axis(p, order, axis=-1)
        kept = np.ones(p.shape, bool)
        if self.top_k is not None:
            kept[..., self.top_k :] = False
        if self.top_p < 1:
            # Nucleus of what top-k left: the shortest prefix that holds top_p of its mass.
            sorted_p = sorted_p * kept
            mass_before = sorted_p.cumsum(axis=-1) - sorted_p
            kept &= mass_before < self.top_p * sorted_p.sum(axis=-1, keepdims=True)
            kept[..., 0] = True
        by_token = np.empty_like(kept)
        np.put_along_axis(by_token, order, kept, axis=-1)
        return by_token


def certain(token: int, vocab_size: int) -> Distribution:
    """The law (V,) of a token that is not drawn but given."""
    law: Distribution = np.zeros(vocab_size)
    law[token] = 1.0
    return law


class Sampler(Protocol):
    """Where every random decision of a run is taken."""

    def draw(self, p: Distribution) -> int:
        """A token id with the law p (V,)."""

    def accept(self, probability: float) -> bool:
        """True with this probability; 1 or more is always True."""


class RandomSampler:
    """Draws from numpy's PCG64 with a visible seed, one uniform number a decision."""

    def __init__(self, seed: int = 0) -> None:
        seed = whole_number(seed, "seed", 0)
        self._uniform = np.random.Generator(np.random.PCG64(seed)).random

    def draw(self, p: Distribution) -> int:
        """Inverse of the cumulated distribution, never a token of probability 0."""
        return inverse_cdf(p, self._uniform())

    def accept(self, probability: float) -> bool:
        """A uniform number in [0, 1) below the probability."""
        return self._uniform() < probability


def inverse_cdf(p: Distribution, uniform: float) -> int:
    """The token whose slice of [0, 1) holds `uniform`; slices lie in the order of ids."""
    cumulated = p.cumsum()
    # Times the last entry, not 1: rounding may leave the sum just below uniform.
    token = int(cumulated.searchsorted(uniform * cumulated[-1], side="right"))
    return token if token < len(p) else int(np.flatnonzero(p)[-1])
