"""Costs of rounds read from a clock that only the models' calls move: what was put in comes out."""

import tracemalloc
from dataclasses import replace

import pytest

from tests.clock import model_clock
from tests.speculative.constant import constant_model
from tinyllm.errors import ContextOverflowError
from tinyllm.sampling import Sampling
from tinyllm.speculative import Costs, NGramDrafter, calibrate, speculate
from tinyllm.speculative.drafters import RunShape
from tinyllm.speculative.rehearsal import PATIENCE, Rehearsal, RoundTime
from tinyllm.speculative.round_times import PAUSE, RESUMED, Turn, costs_of, timed_turns

STEP, DRAFT, WIDER = 8.0, 2.0, 0.5  # ticks of a step, of a draft call, of each further token


@pytest.fixture
def ticks(monkeypatch):
    """A clock that a call of either model moves on, and nothing else does."""
    return model_clock(monkeypatch, lambda one: STEP if one.name == "target" else DRAFT, WIDER)


def models():
    target, draft = constant_model([0.4, 0.6]), constant_model([0.6, 0.4])
    target.name = "target"
    return target, draft


def test_the_parts_of_a_round_are_told_apart(ticks):
    target, draft = models()
    turns = list(timed_turns(target, draft, [0], Sampling(1.0), turns=15, clock=ticks))
    assert all((turn.step, turn.step_call) == (STEP, 1) for turn in turns)
    times = [time for turn in turns for time in turn.in_steps()]
    assert [time.k for time in times] == [k for k in range(1, 9) for _ in range(2)] * 15
    for time in times:
        assert time.drafting == time.k * DRAFT / STEP
        assert time.verifying == (STEP + time.k * WIDER) / STEP
        assert time.feeding == (DRAFT / STEP if time.kept_all else 0)
        assert time.rest == 0
    assert {time.kept_all for time in times} == {True, False}
    costs = costs_of(turns)
    assert costs.c == pytest.approx(DRAFT / STEP)
    assert costs.verification == {n: 1 + (n - 1) * WIDER / STEP for n in range(1, 10)}
    assert costs.asking == pytest.approx(0, abs=1e-12)
    assert costs.per_round == pytest.approx(0, abs=1e-12)
    assert costs.per_proposal == pytest.approx(0, abs=1e-12)
    assert costs.catch_up == DRAFT / STEP
    assert {turn.resumed for turn in turns} == {RESUMED * STEP}
    assert costs.resuming == 0


def test_every_width_is_timed_whatever_the_drafter_finds(ticks):
    target, _ = models()
    turns = timed_turns(target, NGramDrafter(), [0, 1], Sampling(0.7), turns=3, clock=ticks)
    costs = costs_of(list(turns))
    assert costs.c == 0
    assert costs.verification == {n: 1 + (n - 1) * WIDER / STEP for n in range(1, 10)}


@pytest.mark.parametrize("width", [1, 2])
def test_a_large_vocabulary_takes_no_table_of_its_square(width):
    size = 3_000
    target = constant_model([1 / size] * size)
    tracemalloc.start()
    try:
        if width == 1:
            calibrate(target, NGramDrafter(), [0, 1], turns=1)
        else:
            run = {"max_new_tokens": 8, "k": 2, "width": width}
            list(speculate(target, constant_model([1 / size] * size), [0, 1], **run))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * size**2 / 4


def test_work_beside_the_calls_is_a_line_in_k():
    times = [
        RoundTime(k, True, False, 0.1 * k + 0.03, 1.0 + 0.1 * k, 0.02, 0.04 + 0.01 * k)
        for k in (1, 2, 3)
    ]
    costs = costs_of([Turn(1.0, 0.9, tuple(times), replace(times[1], feeding=0.32), RESUMED + 0.6)])
    assert costs.c == pytest.approx(0.1)
    assert costs.asking == pytest.approx(0.03 + 0.02)
    assert costs.per_round == pytest.approx(0.04)
    assert costs.per_proposal == pytest.approx(0.01)
    assert costs.verification[1] == 0.9
    assert costs.returning == pytest.approx(0.3)
    assert costs.resuming == pytest.approx(0.6)
    for time in times:
        parts = time.drafting + time.verifying + time.feeding + time.rest
        assert costs.round(time.k) == pytest.approx(parts)
    twice = [replace(time, verifying=2 * time.verifying) for time in times]
    again = costs_of([Turn(2.0, 0.9, tuple(twice), twice[1], 2 * (RESUMED + 0.6))])
    assert again.verification == costs.verification
    assert again.resuming == pytest.approx(costs.resuming)


def test_rounds_without_proposals_have_a_cost_of_their_own():
    asked = [RoundTime(k, True, False, 0.1 * k + 0.03, 1.0, 0.02, 0.0) for k in (1, 2)]
    silent = [RoundTime(0, False, False, 0.03, 1.2, 0.02, 0.1) for _ in range(3)]
    costs = costs_of([Turn(1.0, 0.9, (*silent, *asked), asked[0], RESUMED)])
    assert costs.silent == pytest.approx(0.3)
    assert costs.round(0) == pytest.approx(1.35)
    assert costs == replace(
        costs_of([Turn(1.0, 0.9, tuple(asked), asked[0], RESUMED)]), silent=costs.silent
    )


def test_a_drafter_is_timed_as_it_speaks_and_made_to_speak_when_it_does_not(ticks):
    target, _ = models()
    run = RunShape(512, 2, Sampling(0.7))
    rehearsal = Rehearsal(target, NGramDrafter(6, 6), [0, 1], run, 0, ticks)
    rehearsal.begin()
    first = [time.k for time in rehearsal.rounds(1)]
    assert first == [0] * PATIENCE + [1], "nothing can repeat itself yet"
    later = [[time.k for time in rehearsal.rounds(1)] for _ in range(60)]
    assert all(ks == [0] * (len(ks) - 1) + [1] for ks in later)
    lengths = {len(ks) - 1 for ks in later}
    assert 0 in lengths
    assert lengths & set(range(1, PATIENCE))
    assert max(lengths) <= PATIENCE


def test_a_draft_that_returns_reads_what_plain_steps_made(ticks):
    target, draft = constant_model([0.4, 0.6]), constant_model([0.4, 0.6])  # all is kept
    target.name = "target"
    turns = list(timed_turns(target, draft, [0], Sampling(1.0), turns=9, clock=ticks))
    assert costs_of(turns).returning == (DRAFT + (PAUSE - 1) * WIDER) / STEP
    assert {turn.returning.k for turn in turns} == {5}


def test_a_calibration_on_the_real_clock(target, draft):
    costs = calibrate(target, draft, "import ", turns=2, temperature=0.7)
    assert isinstance(costs, Costs)
    assert costs.longest == 8
    assert all(cost > 0 for cost in costs.verification.values())
    others = (costs.asking, costs.per_round, costs.per_proposal, costs.catch_up)
    assert min(costs.c, *others, costs.cold, costs.reading, costs.silent, costs.resuming) >= 0
    with pytest.raises(ContextOverflowError):
        calibrate(target, draft, "x" * 510)
