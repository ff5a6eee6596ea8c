"""Closed forms against enumeration, known values and simulation."""

from itertools import product
from math import comb, exp, pi, sqrt

import numpy as np
import pytest

from tinyllm.experiments.statistics import (
    chi_square,
    chi_square_tail,
    expected_total_variation,
    noise_band,
    total_variation,
)


@pytest.mark.parametrize(
    ("x", "degrees", "tail"),
    [
        # Critical values of the usual tables, to all digits that scipy gives.
        (3.841458820694124, 1, 0.05),
        (6.634896601021213, 1, 0.01),
        (5.991464547107979, 2, 0.05),
        (11.344866730144373, 3, 0.01),
        (18.307038053275146, 10, 0.05),
        (124.34211340400407, 100, 0.05),
        (99.33412923598846, 100, 0.5),
        (0.0, 7, 1.0),
        (1e5, 7, 0.0),
    ],
)
def test_the_tail_of_chi_square(x: float, degrees: int, tail: float) -> None:
    assert chi_square_tail(x, degrees) == pytest.approx(tail, rel=1e-12, abs=1e-300)


def test_two_degrees_are_an_exponential() -> None:
    for x in (0.1, 1.0, 30.0, 500.0):
        assert chi_square_tail(x, 2) == pytest.approx(exp(-x / 2), rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("p", [(0.6, 0.3, 0.1), (0.5, 0.5), (1.0, 0.0), (0.25, 0.25, 0.25, 0.25)])
def test_expected_total_variation_is_the_mean_over_all_samples(p, n) -> None:
    law = np.array(p)
    expected = 0.0
    for sample in product(range(len(p)), repeat=n):
        counts = np.bincount(sample, minlength=len(p))
        expected += float(np.prod(law[list(sample)])) * total_variation(counts / n, law)
    assert expected_total_variation(law, n) == pytest.approx(expected, rel=1e-10)


def test_expected_total_variation_at_many_draws_is_the_normal_one() -> None:
    p, n = np.random.default_rng(1).dirichlet(np.ones(96)), 200_000
    normal = sum(sqrt(2 * one * (1 - one) / (pi * n)) for one in p) / 2
    assert expected_total_variation(p, n) == pytest.approx(normal, rel=2e-3)
    assert comb(5000, 2500) > 1e300  # the plain formula would leave the range of floats
    assert expected_total_variation(np.array([0.5, 0.5]), 5000) == pytest.approx(
        sqrt(1 / (2 * pi * 5000)), rel=1e-3
    )


@pytest.mark.parametrize("n", [50, 5_000])
def test_the_band_holds_95_per_cent_of_samples(n: int) -> None:
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(20))
    low, high = noise_band(p, n, rng)
    samples = rng.multinomial(n, p, size=4_000)
    inside = [low <= total_variation(one / n, p) <= high for one in samples]
    assert 0.92 <= np.mean(inside) <= 0.98
    assert low < expected_total_variation(p, n) < high


def test_chi_square_of_a_die() -> None:
    """The textbook's: 60 throws."""
    counts = np.array([5, 8, 9, 8, 10, 20])
    test = chi_square(counts, np.full(6, 1 / 6))
    assert test.statistic == pytest.approx(13.4)
    assert test.degrees == 5
    assert test.p_value == pytest.approx(0.019905, abs=1e-6)


def test_rare_tokens_are_merged() -> None:
    p = np.array([0.01, 0.5, 0.02, 0.44, 0.03])
    test = chi_square(np.array([1, 50, 2, 44, 3]), p)
    # Expected 1 + 2 + 3 = 6 in one cell, and two more.
    assert (test.statistic, test.degrees) == (pytest.approx(0), 2)
    # 1 alone is too few and drags the next in.
    test = chi_square(np.array([1, 59, 40]), np.array([0.01, 0.59, 0.40]))
    assert test.degrees == 1


def test_one_cell_leaves_nothing_to_test() -> None:
    test = chi_square(np.array([9, 0]), np.array([1.0, 0.0]))
    assert test.p_value is None
    assert chi_square(np.array([2, 1]), np.array([0.7, 0.3])).p_value is None


def test_what_cannot_come_is_found_out() -> None:
    assert chi_square(np.array([99, 1]), np.array([1.0, 0.0])).p_value == 0.0


def test_p_values_of_right_samples_are_uniform() -> None:
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(12))
    values = [chi_square(one, p).p_value or 0.0 for one in rng.multinomial(5_000, p, size=2_000)]
    shares = np.histogram(values, bins=10, range=(0, 1))[0] / len(values)
    assert abs(shares - 0.1).max() < 0.03
