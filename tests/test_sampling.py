import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tinyllm.errors import SettingError
from tinyllm.sampling import RandomSampler, Sampling, inverse_cdf

LOGITS = arrays(np.float32, st.integers(1, 96), elements=st.floats(-1e4, 1e4, width=32))


@given(
    LOGITS,
    st.sampled_from([0, 1e-6, 0.5, 1, 1.5, 100]),
    st.sampled_from([None, 1, 2, 50, 200]),
    st.sampled_from([1e-9, 0.3, 0.9, 1.0]),
)
def test_a_distribution_is_one_whatever_the_logits(logits, temperature, top_k, top_p):
    p = Sampling(temperature, top_k, top_p).distribution(logits)
    assert p.dtype == np.float64
    assert abs(p.sum() - 1) < 1e-12
    assert (p >= 0).all()
    assert np.count_nonzero(p) <= (top_k or 96)
    whole = Sampling(temperature).distribution(logits)
    assert whole[p.argmax()] == whole.max()  # what is left is the top


def test_temperature_divides_the_logits():
    logits = np.array([1.0, 2.0, 4.0])
    expected = np.exp(logits / 0.5) / np.exp(logits / 0.5).sum()
    assert np.allclose(Sampling(0.5).distribution(logits), expected, rtol=1e-15)


def test_temperature_zero_takes_the_first_of_the_best():
    assert Sampling(0).distribution(np.array([1.0, 3.0, 3.0])).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("top_k", "top_p", "expected"),
    [
        (2, 1.0, [5 / 8, 3 / 8, 0, 0]),
        (None, 0.79, [5 / 8, 3 / 8, 0, 0]),
        (None, 0.81, [0.5 / 0.9, 0.3 / 0.9, 0.1 / 0.9, 0]),  # the lower id of two equals
        (3, 0.5, [1, 0, 0, 0]),  # top-p of what top-k left: 0.5 / 0.9 > 0.5
        (2, 0.63, [5 / 8, 3 / 8, 0, 0]),
        (1, 1.0, [1, 0, 0, 0]),
        (None, 0.01, [1, 0, 0, 0]),
        (9, 1.0, [0.5, 0.3, 0.1, 0.1]),
    ],
)
def test_top_k_then_top_p(top_k, top_p, expected):
    p = Sampling(1, top_k, top_p).distribution(np.log([0.5, 0.3, 0.1, 0.1]))
    assert np.allclose(p, expected, atol=1e-12)


def test_rows_are_filtered_one_by_one():
    logits = np.random.default_rng(0).normal(size=(4, 5, 96))
    sampling = Sampling(0.8, 7, 0.9)
    rows = sampling.distribution(logits)
    for i in np.ndindex(4, 5):
        assert np.array_equal(rows[i], sampling.distribution(logits[i]))


def test_every_token_owns_its_slice_of_the_unit_interval():
    p = np.array([0.25, 0.0, 0.5, 0.25])
    draws = [inverse_cdf(p, (i + 0.5) / 1000) for i in range(1000)]
    assert np.bincount(draws, minlength=4).tolist() == [250, 0, 500, 250]
    assert inverse_cdf(p, 0.0) == 0
    assert inverse_cdf(p, np.nextafter(1, 0)) == 3


def test_tokens_of_probability_zero_are_never_drawn():
    assert inverse_cdf(np.array([0.0, 1.0, 0.0]), 0.0) == 1
    assert inverse_cdf(np.array([0.0, 1.0, 0.0]), np.nextafter(1, 0)) == 1
    tenths = np.full(10, 0.1)
    assert inverse_cdf(np.append(tenths, 0.0), np.nextafter(1, 0)) == 9


def test_a_seed_is_a_sequence():
    p = np.full(96, 1 / 96)
    first, again = (
        [sampler.draw(p) for _ in range(20)] for sampler in (RandomSampler(7), RandomSampler(7))
    )
    assert first == again
    assert first != [RandomSampler(8).draw(p) for _ in range(20)]


def test_certain_decisions_need_no_luck():
    sampler = RandomSampler(0)
    assert all(sampler.accept(1.0) for _ in range(1000))
    assert not any(sampler.accept(0.0) for _ in range(1000))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((-0.1,), "temperature must lie in 0..100, not -0.1"),
        ((float("nan"),), "temperature"),
        ((float("inf"),), "temperature"),
        ((1, 0), "top_k must be a whole number at least 1, not 0"),
        ((1, None, 0.0), "top_p must be above 0"),
        ((1, None, 1.5), "top_p"),
        ((1, None, float("nan")), "top_p"),
    ],
)
def test_settings_outside_their_range_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        Sampling(*settings)


def test_a_negative_seed_is_refused():
    with pytest.raises(SettingError, match="seed must be a whole number at least 0, not -1"):
        RandomSampler(-1)
