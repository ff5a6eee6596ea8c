"""Figures and sentences of the exactness, sweep and pitfalls pages: valid, and with the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from tests.ui.test_drawing import valid
from tinyllm.experiments.call_cost import CallCost
from tinyllm.experiments.exactness import DrawsRecord, Laws, draws
from tinyllm.experiments.pitfalls import Bars, PitfallRow, Texts
from tinyllm.experiments.sweep import KS, TEMPERATURES, SweepRecord, SweepRow
from tinyllm.experiments.timing import Spread
from tinyllm.tokenizer import ALPHABET, CharTokenizer
from tinyllm.ui import exactness, pitfalls, sweep


def record(seed: int = 1) -> DrawsRecord:
    rng = np.random.default_rng(seed)
    laws = Laws("x", *rng.dirichlet(np.ones(96), size=2), CharTokenizer())
    found = DrawsRecord(laws)
    for row in draws(laws, 1.0, seed, (100, 2_000)):
        found.take(row)
    return found


def test_the_areas_are_all_of_both_laws() -> None:
    laws = record().laws
    accepted, refused, redrawn = valid(exactness.areas_figure(laws)).data
    assert sum(accepted.y) + sum(redrawn.y) == pytest.approx(1)
    assert sum(accepted.y) + sum(refused.y) == pytest.approx(1)
    assert len(accepted.x) == exactness.TOKENS + 1
    assert accepted.customdata[0][0] == pytest.approx(accepted.y[0] + redrawn.y[0])
    assert f"{laws.p.max():.3f}" in exactness.areas_alt(laws)


def test_the_distances_and_their_band() -> None:
    found = record()
    band, *series = valid(exactness.convergence_figure(found.rows)).data
    assert len(series) == 3
    assert list(series[2].y) == [row.tvd_speculative for row in found.rows]
    assert max(band.y) == found.rows[0].noise_high
    valid(exactness.convergence_figure([]))
    assert f"{found.rows[-1].tvd_direct:.4f}" in exactness.convergence_alt(found.rows[-1])


def test_what_a_sample_says() -> None:
    found = record()
    row = found.rows[-1]
    for changed, says in (
        (row, f"{row.tvd_draft_only:.3f} away"),
        (replace(row, p_value=1e-9), "strays from p"),
        (replace(row, p_value=None), "nothing to draw"),
        (replace(row, sum_min=1.0), "agree here"),
    ):
        assert says in exactness.finding(DrawsRecord(found.laws, [changed]))
    assert f"{row.accepted:.4f}" in exactness.formula(found.laws, row)[1]


def costs() -> tuple[CallCost, ...]:
    def cost(role: str, tokens: int, steps: float) -> CallCost:
        return CallCost(role, role, tokens, "one row", Spread.of([steps]), Spread.of([steps]))

    widths = (1, 2, 3, 4, 5, 7, 9, 17)
    return (*(cost("target", n, 1 + (n - 1) / 8) for n in widths), cost("draft", 1, 0.25))


def cell(temperature: float, k: int, speeds: tuple[float, ...]) -> SweepRow:
    identical = None if temperature else True
    spread = Spread.of(speeds)
    return SweepRow(temperature, k, 0.8, 0.7, 2.5, 2.6, 1.9, 1.4, spread, 1, 1000.0, identical)


def test_a_map_that_is_not_full_yet() -> None:
    empty = SweepRecord(costs())
    (heat,) = valid(sweep.heat_figure(empty)).data
    assert all(one is None for line in heat.z for one in line)
    assert "0.25 of a target step" in sweep.finding(empty)
    assert sweep.tiles(empty)["Best cell"] == "-"
    assert len(sweep.formula(empty)) == 1


@pytest.mark.parametrize(("speed", "says"), [(1.31, "wins in 2 of 2"), (0.9, "wins nowhere")])
def test_a_map_says_whether_drafting_wins(speed: float, says: str) -> None:
    found = SweepRecord(costs())
    found.take(cell(0.0, KS[1], (speed,)))
    found.take(cell(TEMPERATURES[-1], KS[0], (speed + 0.01, speed + 0.02, speed + 0.03)))
    (heat,) = valid(sweep.heat_figure(found)).data
    assert heat.z[0][1] == speed
    assert heat.z[2][0] == speed + 0.02
    assert heat.text[2][0].count("<br>") == 2  # quartile, median, quartile
    assert says in sweep.finding(found)
    assert sweep.best(found) is found.rows[TEMPERATURES[-1], KS[0]]
    assert sweep.tiles(found)["Greedy texts as plain"] == "1 of 1"
    assert f"{speed:.2f}" in sweep.heat_alt(found)
    assert "1.40" in sweep.formula(found)[1]


def test_the_cost_of_calls() -> None:
    flat, linear, measured = valid(sweep.cost_figure(costs())).data
    assert set(flat.y) == {1}
    assert linear.y == linear.x
    assert measured.y[-1] == 3
    assert "17: 3.00" in sweep.cost_alt(costs())


def test_two_results_side_by_side() -> None:
    tokens = [ALPHABET.index(symbol) for symbol in "a<b\n"]
    texts = Texts(tuple(tokens), (*tokens[:2], tokens[0]))
    row = PitfallRow("stop-inside-a-round", "tokens", "<4>", "3", "it & stops")
    html = pitfalls.results_html(row, "x ", texts)
    for shown in ("&lt;4&gt;", "it &amp; stops", "a&lt;", 'apart">b⏎</span>', 'apart">a</span>'):
        assert shown in html
    _, parts = pitfalls.findings("stop-inside-a-round", texts)
    assert "new token 2" in parts
    assert len(pitfalls.findings("stop-inside-a-round", None)) == 1
    assert "apart" in pitfalls.results_html(row, "x ", Texts((1,), (1,)))


def test_bars_of_both_results() -> None:
    bars = Bars(("a", "b"), (0.5, -0.1), (0.25, 0.75))
    wrong, right = valid(pitfalls.bars_figure(bars)).data
    assert list(wrong.y) == [0.5, -0.1]
    assert list(right.y) == [0.25, 0.75]
