"""Costs and cells on small sizes: what is counted is exact, what is timed is in turn."""

import pytest

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.experiments import call_cost, sweep
from tinyllm.experiments.call_cost import CallCost, costs_of
from tinyllm.experiments.prompts import validation_prompts
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.sweep import KS, TEMPERATURES, SweepRecord, cells, watch
from tinyllm.experiments.timing import Spread
from tinyllm.model import Transformer, random_model
from tinyllm.speculative import Costs, Counters, speculate, theory

SMALL = ModelConfig(n_layer=2, n_head=4, n_kv_head=2, width=32)
COSTS = Costs(0.25, {n: 1 + 0.1 * (n - 1) for n in range(1, 10)})
PROMPTS = ["def close(self):", "import os, sys\nx"]


@pytest.fixture(scope="module")
def model() -> Transformer:
    return random_model(SMALL, seed=1)


@pytest.fixture(scope="module")
def drafter() -> Transformer:
    return random_model(PRESETS["draft"], seed=2)


def test_every_call_is_timed_in_turn(model: Transformer, drafter: Transformer) -> None:
    rows = list(call_cost.rows(model, drafter, (1, 2, 5), turns=3))
    assert [(row.role, row.tokens) for row in rows] == [
        ("target", 1),
        ("target", 2),
        ("target", 5),
        ("draft", 1),
    ]
    assert rows[0].steps == Spread(1.0, 1.0, 1.0, 3)
    for row in rows:
        assert row.seconds.count == row.steps.count == 3
        assert 0 < row.seconds.low <= row.seconds.median <= row.seconds.high
    costs = costs_of(rows)
    assert costs.c == rows[-1].steps.median
    assert costs.verification == {row.tokens: row.steps.median for row in rows[:-1]}


def test_cells_count_what_the_engine_does(model: Transformer, drafter: Transformer) -> None:
    config = RunConfig(tokens=12, seed=3)
    rows = list(cells(model, drafter, COSTS, PROMPTS, config, (0.0, 0.8), (1, 3), repeats=2))
    assert len(rows) == 2 * 2 * 2 * 2  # repeats, prompts, temperatures, ks
    # The whole map is there after the first prompt.
    assert len({(row.temperature, row.k) for row in rows[:4]}) == 4
    last = {(row.temperature, row.k): row for row in rows}
    for (temperature, k), row in last.items():
        counters = Counters()
        for seed in (3, 4):
            for prompt in PROMPTS:
                settings = {"temperature": temperature, "max_new_tokens": 12, "seed": seed}
                for event in speculate(model, drafter, prompt, k=k, **settings):
                    counters = counters.add(event)
        assert row.alpha == counters.acceptance_rate
        assert row.accepted_per_proposed == counters.accepted_per_proposed
        assert row.tokens_per_call == counters.tokens_per_call
        assert row.equation_1 == theory.tokens_per_call(row.alpha, k)
        assert row.ideal_flat == pytest.approx(row.equation_1 / (0.25 * k + 1))
        assert row.ideal_measured == pytest.approx(row.equation_1 / (0.25 * k + 1 + 0.1 * k))
        assert row.speedup.count == row.pairs == 2 * len(PROMPTS)
        assert row.identical is (None if temperature else True)
        assert row.plain_tokens_per_second > 0


def test_a_target_that_drafts_for_itself_accepts_all(model: Transformer) -> None:
    rows = list(cells(model, model, COSTS, PROMPTS, RunConfig(tokens=10), (0.0,), (4,), repeats=1))
    assert rows[-1].alpha == 1
    assert rows[-1].tokens_per_call == 5  # 10 tokens in 2 rounds
    assert rows[-1].equation_1 == 5


def test_finished_cells_come_a_temperature_at_a_time(model: Transformer) -> None:
    rows = list(sweep.rows(model, model, RunConfig(tokens=8), (0.0, 1.0), (1, 2), repeats=1))
    assert [(row.temperature, row.k) for row in rows] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert all(row.pairs == len(validation_prompts()) for row in rows)


def test_a_watched_sweep_fills_its_record(model: Transformer, drafter: Transformer) -> None:
    record, events = SweepRecord(), watch(RunConfig(tokens=8), model, drafter)
    for event in events:
        assert record.take(event)
        if len(record.rows) == len(KS) * len(TEMPERATURES):
            break
    assert all(isinstance(cost, CallCost) for cost in record.costs)
    assert {k + 1 for k in KS} <= set(costs_of(record.costs).verification)
