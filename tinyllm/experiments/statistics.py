"""How far a sample may stray from its law: total variation, its sampling noise, chi-square.

Closed forms where there are any, so that nothing but numpy is needed. A law is a distribution
(V,) that sums to one; counts (V,) are how often each token came.
"""

from dataclasses import dataclass
from math import erfc, exp, inf, lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tinyllm.sampling import Distribution

Counts = NDArray[np.int64]
LEAST_EXPECTED = 5.0  # of a cell of the chi-square test; Cochran's rule
_SIMULATED = 400  # samples behind a band
# Of a law over more tokens than _MANY a sample takes a hundredth of a second, and distances,
# sums of as many parts, differ little.
_MANY, _SIMULATED_OF_MANY = 1_000, 40
_BAND = (0.025, 0.975)


def total_variation(p: Distribution, q: Distribution) -> float:
    """1/2 sum_x |p(x) - q(x)|: 0 for the same law, 1 for laws with no token in common."""
    return float(abs(p - q).sum()) / 2


def expected_total_variation(p: Distribution, n: int) -> float:
    """E TVD(p, n draws from p), exactly: half the sum of the tokens' mean deviations.

    Each count is binomial, and de Moivre (1730) gave E|X - np| = 2 m C(n, m) p^m (1-p)^(n-m+1)
    with m = floor(np) + 1. For large n it is sqrt(2 p (1-p) n / pi).
    """
    total = 0.0
    for one in p.tolist():
        if 0 < one < 1:
            m = int(n * one) + 1
            # Logarithms: C(n, m) leaves the range of floats at n = 1,030.
            log_binomial = lgamma(n + 1) - lgamma(m + 1) - lgamma(n - m + 1)
            total += exp(
                log(2 * m) + log_binomial + m * log(one) + (n - m + 1) * np.log1p(-one) - log(n)
            )
    return total / 2


def noise_band(p: Distribution, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """Between which TVDs 95 % of samples of n draws from p lie, from simulated samples.

    Simulated, as the sum over dependent tokens has no closed form that holds for few tokens.
    """
    size = _SIMULATED if len(p) <= _MANY else _SIMULATED_OF_MANY
    counts = rng.multinomial(n, p / p.sum(), size)
    distances = abs(counts / n - p).sum(axis=1) / 2
    low, high = np.quantile(distances, _BAND)
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """Pearson's test of counts against a law. p_value is None when one cell is left."""

    statistic: float
    degrees: int  # of freedom: cells - 1
    p_value: float | None  # how often draws from the law stray at least as far


def chi_square(counts: Counts, p: Distribution) -> ChiSquare:
    """The test with rare tokens merged: tokens from the rarest on make one cell until it, and
    every cell left, is expected at least LEAST_EXPECTED times."""
    n = int(counts.sum())
    if counts[p == 0].any():  # what can never come came
        return ChiSquare(inf, int((p > 0).sum()), 0.0)
    order = np.argsort(p, kind="stable")
    expected, observed = n * p[order], counts[order]
    merged = int(np.searchsorted(expected, LEAST_EXPECTED))
    while merged < len(p) and 0 < expected[:merged].sum() < LEAST_EXPECTED:
        merged += 1
    cells = [(expected[:merged].sum(), observed[:merged].sum())]
    cells += zip(expected[merged:], observed[merged:], strict=True)
    cells = [(wanted, got) for wanted, got in cells if wanted > 0]
    statistic = float(sum((got - wanted) ** 2 / wanted for wanted, got in cells))
    degrees = len(cells) - 1
    return ChiSquare(statistic, degrees, chi_square_tail(statistic, degrees) if degrees else None)


def chi_square_tail(x: float, degrees: int) -> float:
    """P(chi-square with `degrees` >= x): the regularised incomplete gamma Q(degrees/2, x/2).

    Q(1/2, h) = erfc(sqrt h), Q(1, h) = e^-h, and Q(a + 1, h) = Q(a, h) + h^a e^-h / Gamma(a + 1)
    (Abramowitz & Stegun 6.5.21), a finite sum for whole degrees.
    """
    h = x / 2
    if h <= 0:
        return 1.0
    a = 0.5 if degrees % 2 else 1.0
    tail = erfc(sqrt(h)) if degrees % 2 else exp(-h)
    while a < degrees / 2:
        tail += exp(a * log(h) - h - lgamma(a + 1))
        a += 1
    return min(tail, 1.0)
