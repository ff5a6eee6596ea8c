"""The formulas against the numbers that their papers print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.errors import SettingError
from tinyllm.speculative.theory import (
    accepted_per_proposed,
    alpha_of,
    forecast,
    improvement,
    operations_factor,
    tokens_per_call,
)


@pytest.mark.parametrize(
    ("alpha", "k", "operations", "speed"),
    [
        (0.6, 2, 1.53, 1.96),
        (0.7, 3, 1.58, 2.53),
        (0.8, 2, 1.23, 2.44),
        (0.8, 5, 1.63, 3.69),
        (0.9, 2, 1.11, 2.71),
        (0.9, 10, 1.60, 6.86),
    ],
)
def test_table_1_of_leviathan(alpha, k, operations, speed):
    assert operations_factor(alpha, k) == pytest.approx(operations, abs=0.005)
    assert improvement(alpha, k, 0) == pytest.approx(speed, abs=0.005)


@pytest.mark.parametrize(
    ("k", "alpha", "c", "speed"),
    [
        (7, 0.75, 0.02, 3.2),
        (7, 0.8, 0.04, 3.3),
        (7, 0.82, 0.11, 2.5),
        (7, 0.62, 0.02, 2.3),
        (5, 0.68, 0.04, 2.4),
        (3, 0.71, 0.11, 2.0),
    ],
)
def test_table_4_of_leviathan_within_its_printed_rounding(k, alpha, c, speed):
    assert improvement(alpha - 0.005, k, c + 0.005) <= speed + 0.05
    assert improvement(alpha + 0.005, k, c - 0.005) >= speed - 0.05


def test_a_bigram_draft():
    assert improvement(0.2, 3, 0) == pytest.approx(1.25, abs=0.005)


def test_a_public_case_of_costly_verification():
    """Target 52.5 tokens/s, draft 619.4, a batch of five 121.7: k = 5, 5.0 tokens a call."""
    c = 52.5 / 619.4
    alpha = 0.9265
    assert tokens_per_call(alpha, 5) == pytest.approx(5.0, abs=0.005)
    assert improvement(alpha, 5, c) == pytest.approx(3.51, abs=0.005)
    per_token = 52.5 / 121.7  # of a verification, in plain steps
    assert forecast(alpha, 5, c, lambda n: n * per_token) == pytest.approx(1.66, abs=0.005)


@given(st.floats(0, 1), st.integers(0, 64))
def test_tokens_per_call_lie_between_1_and_k_plus_1(alpha, k):
    assert 1 <= tokens_per_call(alpha, k) <= k + 1


@given(st.floats(0, 0.999), st.integers(0, 64))
def test_tokens_per_call_is_eq_1(alpha, k):
    closed_form = (1 - alpha ** (k + 1)) / (1 - alpha)
    assert tokens_per_call(alpha, k) == pytest.approx(closed_form, rel=1e-9)


def test_corollary_3_9():
    for alpha in (0.1, 0.5, 0.9):
        for c in (0.01, 0.2):
            assert improvement(alpha, 1, c) == pytest.approx((1 + alpha) / (1 + c))


def test_flat_verification_is_theorem_3_8():
    assert forecast(0.8, 4, 0.1, lambda n: 1.0) == improvement(0.8, 4, 0.1)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_outside_0_to_1_is_refused(alpha):
    with pytest.raises(SettingError, match=r"alpha must lie in 0\.\.1"):
        tokens_per_call(alpha, 3)
    with pytest.raises(SettingError, match="k must be at least 0"):
        tokens_per_call(0.5, -1)


def test_non_flat_verification_of_the_public_case():
    """The issue's own arithmetic: its batch of five is all that a verification costs."""
    alpha = alpha_of(1 + 208 / 52, 5)
    batch_of_five = 5 * 52.5 / 121.7
    assert forecast(alpha, 5, 52.5 / 619.4, lambda n: batch_of_five) == pytest.approx(
        1.94, abs=0.005
    )


@pytest.mark.parametrize(
    ("k", "share"), [(1, 0.80), (2, 0.72), (4, 0.5904), (8, 0.416), (16, 0.243)]
)
def test_accepted_per_proposed_falls_with_k(k, share):
    assert accepted_per_proposed(0.8, k) == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize(("alpha", "speed"), [(0.75, 3.3), (0.8, 3.9), (0.87, 4.9)])
def test_appendix_a5_of_leviathan_within_its_printed_rounding(alpha, speed):
    assert improvement(alpha - 0.005, 8, 0.015) <= speed + 0.05
    assert improvement(alpha + 0.005, 8, 0.015) >= speed - 0.05


@given(st.floats(0, 1), st.integers(1, 64))
def test_alpha_of_inverts_eq_1(alpha, k):
    found = alpha_of(tokens_per_call(alpha, k), k)
    assert tokens_per_call(found, k) == pytest.approx(tokens_per_call(alpha, k), rel=1e-12)


@pytest.mark.parametrize("per_call", [0.9, 6.1, float("nan")])
def test_tokens_per_call_that_cannot_be_are_refused(per_call):
    with pytest.raises(SettingError, match=r"tokens per call must lie in 1\.\.6"):
        alpha_of(per_call, 5)
    with pytest.raises(SettingError, match="k must be at least 1"):
        accepted_per_proposed(0.5, 0)
