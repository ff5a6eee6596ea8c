"""The planner's numbers against the theory and against a roofline reckoned by hand."""

import pytest

from tinyllm.errors import SettingError
from tinyllm.experiments.planner import BATCHES, KS, PlanSettings, by_batch, by_k, fast_gpus
from tinyllm.memory.gpus import gpus
from tinyllm.speculative import theory
from tinyllm.speculative.curves import Roofline, flat, linear

# 1,000 bytes at 1,000 a second; 500 parameters, so 1,000 operations a token at 8,000 a second.
TOY = Roofline(500, 1000, 0, 1000, 8000)


def test_a_roofline_by_hand() -> None:
    assert TOY.tokens_for_nothing == 8
    assert [TOY.seconds(1, n) for n in (1, 8, 16)] == [1, 1, 2]
    assert [TOY.seconds(batch) for batch in (1, 8, 32)] == [1, 1, 4]
    assert [TOY.curve(1)(n) for n in (1, 5, 16)] == [1, 1, 2]
    assert [TOY.curve(8)(n) for n in (1, 2, 5)] == [1, 2, 5]  # no arithmetic is left over
    assert [TOY.curve(4)(n) for n in (1, 2, 5)] == [1, 1, 2.5]


def test_a_long_cache_gives_the_win_back() -> None:
    """MagicDec: where every sequence's cache is read too, a batch has arithmetic left over."""
    long = Roofline(500, 1000, 1000, 1000, 8000)
    assert long.seconds(8) == 9
    assert long.curve(8)(5) == 1 < TOY.curve(8)(5)


def test_flat_is_theorem_3_8_and_linear_its_slope() -> None:
    plan = PlanSettings(curve="flat", alpha=0.7, c=0.1, k=3)
    for row in by_k(plan):
        assert row.speedup == row.flat == theory.improvement(0.7, row.k, 0.1)
        assert row.call_cost == flat(row.k + 1) == 1
    for row in by_k(plan.with_(curve="linear", slope=0.25)):
        assert row.call_cost == linear(0.25)(row.k + 1) == 1 + 0.25 * row.k
        assert row.speedup == pytest.approx(row.tokens_per_call / (row.k * 0.1 + row.call_cost))


def test_the_batch_takes_the_win_away() -> None:
    plan = PlanSettings()
    rows = by_batch(plan)
    assert [row.batch for row in rows] == list(BATCHES)
    assert rows[0].speedup == theory.improvement(plan.alpha, plan.k, plan.c)
    assert rows[0].best_k == max(KS, key=lambda k: theory.improvement(plan.alpha, k, plan.c))
    speeds = [row.speedup for row in rows]
    assert speeds == sorted(speeds, reverse=True)
    assert speeds[-1] < 1
    assert (rows[-1].best_k, rows[-1].best_speedup) == (0, 1.0)
    # Far beyond what arithmetic has left over, a call of n tokens costs n steps.
    assert rows[-1].call_cost == plan.k + 1


def test_the_models_size_changes_nothing_but_the_time() -> None:
    small, large = PlanSettings(billions=1.0), PlanSettings(billions=100.0)
    speeds = [[row.speedup for row in by_k(plan)] for plan in (small, large)]
    assert speeds[0] == pytest.approx(speeds[1])
    assert large.roofline.seconds(1) == pytest.approx(100 * small.roofline.seconds(1))


def test_gpus_of_the_roofline_have_a_source() -> None:
    assert len(fast_gpus()) >= 12
    assert all(one.operations_per_second and one.speed_source for one in fast_gpus().values())
    for one in gpus().values():
        assert (one.bytes_per_second is None) == (one.operations_per_second is None)


@pytest.mark.parametrize("change", [{"alpha": 1.1}, {"k": 0}, {"gpu": "x"}, {"curve": "x"}])
def test_what_cannot_be_is_refused(change: dict) -> None:
    with pytest.raises(SettingError, match=next(iter(change))):
        PlanSettings(**change)
