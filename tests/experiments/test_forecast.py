"""The forecast against runs on a clock that the models' calls alone move: it is right there."""

import pytest

from tests.clock import model_clock
from tinyllm.experiments import forecast
from tinyllm.experiments.forecast import shipped_pairs, watch
from tinyllm.experiments.forecast_record import KS, ForecastRecord, Measured
from tinyllm.experiments.prompts import validation_prompts
from tinyllm.experiments.settings import RunConfig
from tinyllm.loading import shipped_models
from tinyllm.speculative import NGramDrafter, speculate

STEP, DRAFT, WIDER = 8.0, 1.0, 0.5  # ticks of a step, of a draft call, of each further token


@pytest.fixture
def ticks(monkeypatch):
    """A clock that calls of models move on: the larger model's cost a step, and some a token."""
    return model_clock(monkeypatch, lambda one: STEP if one.config.n_layer > 1 else DRAFT, WIDER)


def recorded(target, drafter, config, ticks, repeats=1, prompts=None):
    record = ForecastRecord()
    for event in watch(config, target, drafter, prompts, repeats, clock=ticks):
        record.take(event)
    return record.rows("target", "drafter", config.temperature), record


@pytest.mark.parametrize("drafter", ["draft", "ngram"])
def test_at_temperature_0_the_forecast_is_the_measurement(target, draft, ticks, drafter):
    """Every text is known beforehand, and so is every cost: nothing is left to be wrong."""
    chosen = draft if drafter == "draft" else NGramDrafter()
    prompts = validation_prompts()[:3]
    rows, record = recorded(target, chosen, RunConfig(temperature=0.0), ticks, 1, prompts)
    assert [row.k for row in rows] == [*KS, "auto"]
    for row in rows[:-1]:
        assert row.tokens_per_call == pytest.approx(row.tokens_per_call_measured)
        assert row.ratio == pytest.approx(1, abs=1e-9)
        assert row.call_cost == 1 + row.k * WIDER / STEP
        assert row.flat > row.forecast
    best = max(rows[:-1], key=lambda row: row.forecast)
    assert [row.best for row in rows] == [row is best for row in rows]
    assert record.costs.c == (DRAFT / STEP if drafter == "draft" else 0)
    assert rows[-1].speedup.median >= 0.97


@pytest.mark.parametrize("tokens", [8, 96, 384])
def test_steps_that_grow_with_the_text_are_measured_where_rounds_are(target, monkeypatch, tokens):
    """A step is an eighth dearer a hundred tokens later, as on the shipped target."""
    ticks = model_clock(monkeypatch, lambda _: STEP, WIDER, longer=STEP / 800)
    config, prompts = RunConfig(temperature=0.0, tokens=tokens), validation_prompts()[:3]
    rows, record = recorded(target, NGramDrafter(), config, ticks, 1, prompts)
    assert [row.ratio for row in rows[:-1]] == pytest.approx([1.0] * len(KS), abs=0.05)
    costs = record.costs
    assert costs.verification[2] - costs.verification[1] == pytest.approx(WIDER / STEP, rel=0.2)


def test_with_temperature_it_is_as_near_as_texts_differ(target, draft, ticks):
    rows, _ = recorded(target, draft, RunConfig(temperature=0.7), ticks, repeats=2)
    for row in rows[:-1]:
        assert row.ratio == pytest.approx(1, abs=0.1)
        assert row.tokens_per_call == pytest.approx(row.tokens_per_call_measured, rel=0.1)
    assert rows[-1].speedup.median >= 0.97


def test_what_is_timed_follows_its_like(target, ticks, monkeypatch):
    """Rounds of a fixed k follow such rounds, and of three runs of auto k that of the middle
    counts: the caches are as their like leave them."""
    begun = []

    def started(*given, k, **named):
        begun.append(k)
        return speculate(*given, k=k, **named)

    monkeypatch.setattr(forecast, "speculate", started)
    events = watch(RunConfig(), target, NGramDrafter(), ["def "], 1, clock=ticks)
    assert [event.k for event in events if isinstance(event, Measured)] == [*KS, "auto"]
    assert begun == [KS[4], *KS, "auto", "auto", "auto"]


def test_nothing_is_said_before_a_text(target, draft):
    events = watch(RunConfig(tokens=8), target, draft, ["x = "], ks=(2,))
    record = ForecastRecord()
    assert record.rows("target", "draft", 0.7) == []
    assert not record.take(next(events))  # costs alone move no point
    assert record.rows("target", "draft", 0.7) == []
    assert record.take(next(events))
    rows = record.rows("target", "draft", 0.7)
    assert [row.k for row in rows] == list(KS)
    assert all(row.forecast > 0 and row.speedup is None for row in rows)
    assert record.take(next(events))
    rows = record.rows("target", "draft", 0.7)
    assert [row.ratio is None for row in rows] == [row.k != 2 for row in rows]


def test_pairs_are_those_that_are_here():
    pairs, here = shipped_pairs(), set(shipped_models())
    assert pairs[-2:] == [("target", "draft"), ("target", "ngram")]
    assert (("base", "base-draft") in pairs) == ({"base", "base-draft"} <= here)
