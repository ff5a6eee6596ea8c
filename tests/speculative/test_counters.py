import numpy as np
import pytest

from tinyllm.speculative import Counters, Round

EMPTY = np.empty((0, 0))


def a_round(accepted, proposed=3):
    tested = min(accepted + 1, proposed)
    closing = "bonus" if accepted == proposed else "corrected"
    tokens = (0,) * (accepted + 1)
    return Round(0, (0,) * proposed, accepted, tested, tokens, closing, EMPTY, EMPTY, 0, 0)


def test_the_published_histogram():
    """Counts of 0, 1, 2, 3 accepted of k = 3: 39, 1, 0, 3."""
    counters = Counters.of(
        a_round(accepted) for accepted, rounds in enumerate([39, 1, 0, 3]) for _ in range(rounds)
    )
    assert (counters.drafts, counters.proposed, counters.accepted) == (43, 129, 10)
    assert counters.tested == 50
    assert counters.tokens_per_call == pytest.approx(1.23256, abs=5e-6)
    assert counters.accepted_per_proposed == pytest.approx(0.0775, abs=5e-5)
    assert counters.acceptance_rate == pytest.approx(0.20)
    assert counters.accepted_at == (4, 3, 3)
    assert counters.survival == pytest.approx((4 / 43, 3 / 43, 3 / 43))
    assert counters.conditional == pytest.approx((4 / 43, 3 / 4, 1.0))


def test_tokens_per_call_is_one_plus_accepted_per_draft():
    counters = Counters.of(a_round(accepted) for accepted in (0, 3, 2, 1))
    assert counters.tokens_per_call == 1 + counters.accepted / counters.drafts


def test_a_stop_is_not_counted_as_a_drawn_token():
    stopped = Round(0, (0, 0, 0), 2, 2, (0, 0), "stopped", EMPTY, EMPTY, 0, 0)
    assert Counters.of([stopped]).tokens_per_call == 2


def test_a_place_never_accepted_is_told():
    counters = Counters.of([a_round(1, proposed=4), a_round(1, proposed=2)])
    assert counters.survival == (1.0, 0.0, 0.0, 0.0)
    assert counters.conditional == (1.0, 0.0, None, None)


def test_a_round_with_fewer_proposals_does_not_count_for_later_places():
    counters = Counters.of([a_round(3), a_round(1, proposed=1)])
    assert counters.survival == (1.0, 1.0, 1.0)
    assert counters.conditional == (1.0, 1.0, 1.0)


def test_ratios_of_nothing_are_none():
    empty = Counters()
    assert empty.tokens_per_call is None
    assert empty.acceptance_rate is None
    assert empty.accepted_per_proposed is None
    assert empty.survival == empty.conditional == ()
    plain_step = Counters.of([Round(0, (), 0, 0, (5,), "bonus", EMPTY, EMPTY, 0, 0)])
    assert plain_step.tokens_per_call == 1
    assert plain_step.acceptance_rate is None
