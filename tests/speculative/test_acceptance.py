"""The acceptance rule on published toys, beside what known faulty engines emit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tinyllm.speculative.acceptance import acceptance_probability, acceptance_rate, residual

P = np.array([0.6, 0.3, 0.1])
Q = np.array([0.5, 0.2, 0.3])


def emitted(p, q, drawn_from=None, redrawn_from=None):
    """Law of a position: proposals from drawn_from, judged by p / q, redrawn on rejection."""
    proposals = q if drawn_from is None else drawn_from
    after_rejection = residual(p, q) if redrawn_from is None else redrawn_from
    law = np.zeros(len(p))
    for token in np.flatnonzero(proposals):
        accepted = acceptance_probability(p, q, token)
        law[token] += proposals[token] * accepted
        law += proposals[token] * (1 - accepted) * after_rejection
    return law


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def test_the_toy_emits_p_and_accepts_four_fifths():
    assert np.allclose(emitted(P, Q), P, atol=1e-15)
    assert acceptance_rate(P, Q) == pytest.approx(4 / 5)


def test_a_one_hot_draft_emits_p_and_accepts_p_of_it():
    one_hot = np.array([1.0, 0, 0])
    assert np.allclose(emitted(P, one_hot), P, atol=1e-15)
    assert acceptance_rate(P, one_hot) == pytest.approx(3 / 5)


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ({"drawn_from": np.array([1.0, 0, 0])}, [1, 0, 0]),  # argmax drawn, softmax judged
        ({"redrawn_from": softmax(np.maximum(P - Q, 0))}, [0.569, 0.269, 0.162]),
        ({"redrawn_from": P}, [31 / 50, 13 / 50, 3 / 25]),
    ],
)
def test_known_faults_emit_another_law(fault, law):
    assert np.allclose(emitted(P, Q, **fault), law, atol=5e-4)
    assert not np.allclose(law, P, atol=0.01)


def test_filtering_the_draw_but_not_the_ratio_emits_another_law():
    top_2 = np.array([2 / 3, 1 / 3, 0])
    drawn = np.array([5 / 7, 2 / 7, 0])
    assert np.allclose(emitted(top_2, drawn), top_2, atol=1e-15)
    assert np.allclose(emitted(top_2, Q, drawn_from=drawn), [5 / 7 + 2 / 7 * 0, 2 / 7, 0])


DISTRIBUTIONS = arrays(np.float64, 5, elements=st.floats(0, 1)).filter(lambda a: a.sum() > 0.1)


@given(DISTRIBUTIONS, DISTRIBUTIONS)
def test_any_pair_emits_p(p, q):
    p, q = p / p.sum(), q / q.sum()
    assert np.allclose(emitted(p, q), p, atol=1e-12)
    assert 0 <= acceptance_rate(p, q) <= 1 + 1e-12


def test_equal_distributions_always_accept():
    assert all(acceptance_probability(P, P.copy(), token) == 1.0 for token in range(3))
    assert np.array_equal(residual(P, P.copy()), P)  # nothing remains; still a distribution


def test_a_vocabulary_of_one():
    one = np.array([1.0])
    assert acceptance_probability(one, one, 0) == 1.0
    assert residual(one, one).tolist() == [1.0]
