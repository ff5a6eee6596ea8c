"""bench exactness: the acceptance rule drawn many times, and how near its output is to p.

Beside it, from uniform numbers of their own, draws from the target directly (what sampling noise
looks like) and the drafter's proposals taken as they are (what a changed law looks like). The
rule is the engine's, asked about a whole array of proposals at once; the loop draws instead where
a proposal is certain, with the same law.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.errors import SettingError
from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.statistics import (
    Counts,
    chi_square,
    expected_total_variation,
    noise_band,
    total_variation,
)
from tinyllm.model import Transformer
from tinyllm.sampling import Distribution, Sampling
from tinyllm.speculative import Drafter, speculate
from tinyllm.speculative.acceptance import acceptance_rate, residual
from tinyllm.tokenizer import Tokenizer

PREFIXES = ("import ", "    return self.", "        if not ")
# For models of word pieces: each ends where it began to repeat itself, as prompt lookup needs.
PIECE_PREFIXES = (
    "The cat sat on the mat. The dog sat on the",
    "red, green, blue, red, green,",
    "def area(width, height):\n    return width * height\n\ndef volume(width, height, depth):\n"
    "    return width *",
)
CHECKPOINTS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
TEMPERATURE = 1.0
Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Laws:
    """What the two models say of the token after a prefix, after temperature and filters."""

    prefix: str
    p: Distribution = field(repr=False)  # (V,), the target's
    q: Distribution = field(repr=False)  # (V,), the drafter's
    tokenizer: Tokenizer = field(repr=False, compare=False)  # says what the tokens are

    @property
    def accepted(self) -> Distribution:
        """(V,) min(p, q): how often a proposal of this token is made and accepted."""
        return np.minimum(self.p, self.q)

    @property
    def refused(self) -> Distribution:
        """(V,) max(0, q - p): how often it is proposed and refused."""
        return np.maximum(self.q - self.p, 0)

    @property
    def redrawn(self) -> Distribution:
        """(V,) max(0, p - q): how often it is drawn after a refusal. Sums to what is refused."""
        return np.maximum(self.p - self.q, 0)


@dataclass(frozen=True, slots=True)
class DrawsRow:
    """How near each way to sample is to p after a number of draws."""

    prefix: str
    temperature: float
    draws: int
    accepted: float  # share of the proposals
    sum_min: float  # sum_x min(p, q), what it should be
    tvd_speculative: float
    tvd_direct: float
    tvd_draft_only: float
    noise: float  # expected TVD of as many draws from p
    noise_low: float  # 95 % of such samples lie between these
    noise_high: float
    chi_square: float  # of the speculative draws against p
    degrees: int
    p_value: float | None
    p_value_direct: float | None
    p_value_draft_only: float | None


def laws(
    target: Transformer,
    drafter: Drafter | Transformer,
    prefix: str,
    sampling: Sampling,
    kv_dtype: str,
) -> Laws:
    """p and q after a prefix, as the engine's own round has them.

    Raises TokenError for one that the target has no tokens for, and SettingError where the
    drafter proposes nothing.
    """
    settings: dict[str, Any] = {"temperature": sampling.temperature, "top_k": sampling.top_k}
    settings |= {"top_p": sampling.top_p, "kv_dtype": kv_dtype, "k": 1, "max_new_tokens": 2}
    tokens = target.tokenizer.encode(prefix)
    event = next(speculate(target, drafter, tokens, **settings))
    if not event.proposed:
        raise SettingError(
            "the drafter proposes nothing behind this prompt: let its end be one that occurred in "
            "it before, or choose another drafter"
        )
    return Laws(prefix, event.p[0], event.q[0], target.tokenizer)


def drawn(p: Distribution, uniforms: NDArray[np.float64]) -> Tokens:
    """sampling.inverse_cdf of many uniform numbers at once."""
    cumulated = p.cumsum()
    tokens = cumulated.searchsorted(uniforms * cumulated[-1], side="right")
    found: Tokens = np.where(tokens < len(p), tokens, np.flatnonzero(p)[-1])
    return found


def speculative_draws(
    p: Distribution, q: Distribution, uniforms: NDArray[np.float64]
) -> tuple[Tokens, Tokens, NDArray[np.bool_]]:
    """The rule for one position, n times: emitted tokens, proposals, and which were accepted.

    uniforms (n, 3) decide the proposal, the verdict and the draw after a refusal.
    """
    proposed = drawn(q, uniforms[:, 0])
    accepted = uniforms[:, 1] < np.minimum(1, p[proposed] / q[proposed])
    redrawn = drawn(residual(p, q), uniforms[:, 2])
    return np.where(accepted, proposed, redrawn), proposed, accepted


def draws(
    found: Laws, temperature: float, seed: int = 0, checkpoints: Sequence[int] = CHECKPOINTS
) -> Iterator[DrawsRow]:
    """Draw on and on, with a row at each checkpoint."""
    p, q = found.p, found.q
    rng = np.random.Generator(np.random.PCG64(seed))
    speculative, direct, draft_only = (np.zeros(len(p), np.int64) for _ in range(3))
    done, accepted = 0, 0
    for checkpoint in checkpoints:
        uniforms = rng.random((checkpoint - done, 4))
        emitted, proposed, verdicts = speculative_draws(p, q, uniforms[:, :3])
        speculative += _counts(emitted, len(p))
        draft_only += _counts(proposed, len(p))
        direct += _counts(drawn(p, uniforms[:, 3]), len(p))
        accepted += int(verdicts.sum())
        done = checkpoint
        low, high = noise_band(p, done, rng)
        test = chi_square(speculative, p)
        yield DrawsRow(
            prefix=found.prefix,
            temperature=temperature,
            draws=done,
            accepted=accepted / done,
            sum_min=acceptance_rate(p, q),
            tvd_speculative=total_variation(speculative / done, p),
            tvd_direct=total_variation(direct / done, p),
            tvd_draft_only=total_variation(draft_only / done, p),
            noise=expected_total_variation(p, done),
            noise_low=low,
            noise_high=high,
            chi_square=test.statistic,
            degrees=test.degrees,
            p_value=test.p_value,
            p_value_direct=chi_square(direct, p).p_value,
            p_value_draft_only=chi_square(draft_only, p).p_value,
        )


def rows(
    target: Transformer,
    draft: Transformer,
    prefixes: Sequence[str] = PREFIXES,
    temperature: float = TEMPERATURE,
    seed: int = 0,
    checkpoints: Sequence[int] = CHECKPOINTS,
) -> Iterator[DrawsRow]:
    """Every prefix in turn."""
    for prefix in prefixes:
        found = laws(target, draft, prefix, Sampling(temperature), "float32")
        yield from draws(found, temperature, seed, checkpoints)


@dataclass(slots=True)
class DrawsRecord:
    """The laws after a visitor's prefix, and the rows so far."""

    laws: Laws
    rows: list[DrawsRow] = field(default_factory=list)

    def take(self, row: DrawsRow) -> bool:
        """Take one row in; each is worth drawing."""
        self.rows.append(row)
        return True


def prefixes_for(model: ModelChoice) -> tuple[str, ...]:
    """Prefixes worth trying with a model."""
    return PREFIXES if model.characters else PIECE_PREFIXES


def chosen_laws(config: RunConfig, target: Transformer, drafter: Drafter | Transformer) -> Laws:
    """p and q at the end of a run's prompt, with its sampling."""
    sampling = Sampling(config.temperature, config.top_k or None, config.top_p)
    return laws(target, drafter, config.prompt, sampling, config.kv_dtype)


def _counts(tokens: Tokens, vocab_size: int) -> Counts:
    counts: Counts = np.bincount(tokens, minlength=vocab_size)
    return counts
