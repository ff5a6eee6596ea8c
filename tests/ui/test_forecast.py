"""Figures and sentences of the forecast page: valid, and with the numbers of their rows."""

from dataclasses import replace

from tests.ui.test_drawing import valid
from tinyllm.experiments.forecast_record import KS, ForecastRecord, ForecastRow
from tinyllm.experiments.planner import PlanSettings, by_batch, by_k
from tinyllm.experiments.published import rows as published
from tinyllm.experiments.timing import Spread
from tinyllm.speculative import Costs
from tinyllm.ui import forecast, planner

AUTO = ForecastRow("t", "d", 0.7, "auto", speedup=Spread(1.4, 1.3, 1.5, 3))


def row(k: int, forecast: float = 1.2, **changes: object) -> ForecastRow:
    """k = 3 is the best one."""
    found = ForecastRow(
        target="t",
        drafter="d",
        temperature=0.7,
        k=k,
        alpha=0.8,
        call_cost=1 + k / 8,
        tokens_per_call=2.5,
        tokens_per_call_measured=2.4,
        flat=1.9,
        forecast=forecast + 0.1 * (k == 3),
        speedup=Spread(1.25, 1.2, 1.3, 3),
        ratio=(forecast + 0.1 * (k == 3)) / 1.25,
        best=k == 3,
    )
    return replace(found, **changes)


def test_a_forecast_that_wins() -> None:
    rows = [*map(row, KS), AUTO]
    flat, said, measured = valid(forecast.figure(rows)).data
    assert list(said.y) == [one.forecast for one in rows[:-1]]
    assert list(flat.x) == [str(k) for k in KS]
    assert list(measured.x) == [*map(str, KS), "auto"]
    assert list(measured.y) == [one.speedup.median for one in rows]
    words = forecast.finding(rows)
    assert "k = 3, at 1.30 times plain speed; measured is 1.25" in words
    assert "Checking 4 tokens costs 1.38 steps" in words
    assert "off by at most 4%" in words
    assert list(forecast.tiles(rows).values()) == ["3", "1.25 ×", "1.40 ×", "4%"]
    assert "k 3: forecast 1.30, measured 1.25" in forecast.alt(rows)
    assert "k auto: forecast -, measured 1.40" in forecast.alt(rows)


def test_a_forecast_that_loses_and_one_not_measured_yet() -> None:
    lost = [row(k, 0.7) for k in KS]
    assert "no k wins: the best, k = 3, at 0.80 times" in forecast.finding(lost)
    said = [row(k, speedup=None, ratio=None) for k in KS]
    assert forecast.finding(said).startswith("The forecast: k = 3 is best, at 1.30 times")
    assert list(forecast.tiles(said).values()) == ["3", "-", "-", "-"]
    assert len(valid(forecast.figure(said)).data[2].x) == 0


def test_nothing_yet() -> None:
    valid(forecast.figure([]))
    assert "a forecast follows" in forecast.finding([])
    assert "nothing is measured yet" in forecast.alt([])
    assert forecast.formula(ForecastRecord(), []) == (forecast.FORMULA,)


def test_every_cost_is_told() -> None:
    costs = Costs(
        0.11, {1: 0.9, 2: 1.2}, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, silent=0.08, resuming=0.09
    )
    told = [value for _, value, _ in forecast.cost_rows(costs)]
    own = ["0.110", "0.020", "0.030", "0.040", "0.050", "0.080", "0.060", "0.070", "0.090"]
    assert told == ["1: 0.90, 2: 1.20", *own]


def test_a_plan_and_where_its_batch_ends_the_win() -> None:
    plan = PlanSettings()
    ks, batches = by_k(plan), by_batch(plan)
    _flat, curve, here = valid(planner.k_figure(ks, plan.k)).data
    assert list(curve.y) == [one.speedup for one in ks]
    assert here.x[0] == plan.k
    best, chosen = valid(planner.batch_figure(batches, plan)).data
    assert list(chosen.y) == [one.speedup for one in batches]
    assert list(best.customdata) == [one.best_k for one in batches]
    lost = next(one.batch for one in batches if one.speedup < 1)
    words = planner.finding(plan, ks, batches)
    assert f"takes the win away: from {lost} on, k = 4 is slower" in words
    assert f"{plan.gpu}: 3.35 TB/s and 989 TFLOP/s" in str(planner.basis(plan))
    assert f"k 4: {ks[3].speedup:.2f}" in planner.k_alt(ks)
    assert f"batch 1: {batches[0].speedup:.2f}" in planner.batch_alt(batches)


def test_other_plans() -> None:
    flat = PlanSettings(curve="flat")
    assert "knows no batch" in planner.finding(flat, by_k(flat), by_batch(flat))
    assert planner.basis(flat) is None
    hopeless = PlanSettings(alpha=0.1, c=0.5)
    words = planner.finding(hopeless, by_k(hopeless), by_batch(hopeless))
    assert "At every batch size, even one, k = 4 is slower" in words
    assert "takes the win away" not in words
    long = PlanSettings(cache_gib=64.0)
    assert "never slower than plain" in planner.finding(long, by_k(long), by_batch(long))


def test_published_numbers_are_told_with_their_source() -> None:
    table = planner.published_table(list(published()))
    assert {line["agrees"] for line in table} == {"yes"}
    assert all(line["source"] and line["published"] and line["computed"] for line in table)
