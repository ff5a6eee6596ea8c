"""How the forecast page draws and tells what a pair will win, and what it won."""

from collections.abc import Sequence
from typing import Any

from tinyllm.experiments.forecast_record import KS, ForecastRecord, ForecastRow
from tinyllm.experiments.timing import Spread
from tinyllm.speculative import AUTO, Costs
from tinyllm.ui.figures import MARGIN, heading, quartiles
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _

LEGEND = {"orientation": "h", "x": 0.02, "y": 0.02, "xanchor": "left", "yanchor": "bottom"}


def figure(rows: Sequence[ForecastRow]) -> Figure:
    """Speed-up by k: the flat ideal, the forecast, and what was measured, k = auto last."""
    fixed = [row for row in rows if row.k != AUTO]
    measured = [row for row in rows if row.speedup is not None]
    spreads = [row.speedup for row in measured if row.speedup is not None]
    data = [
        _line(fixed, [row.flat for row in fixed], _("if checking cost one step"), "$2", "dash"),
        _line(fixed, [row.forecast for row in fixed], _("forecast"), "$1", "dot"),
        {
            "type": "scatter",
            "mode": "markers",
            "name": _("measured"),
            "x": [str(row.k) for row in measured],
            "y": [spread.median for spread in spreads],
            "error_y": quartiles(spreads, "$0"),
            "marker": {"size": 10, "color": "$0", "symbol": "diamond"},
            "hovertemplate": _("k = %{x}: measured %{y:.2f} × plain<extra></extra>"),
        },
    ]
    lines = [height or 0 for row in fixed for height in (row.flat, row.forecast)]
    top = max([1.2, *lines, *(spread.high for spread in spreads)])
    layout = {
        "margin": MARGIN,
        "xaxis": {
            "title": {"text": _("k, proposals a round")},
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [*map(str, KS), AUTO],
            "range": [-0.5, len(KS) + 0.5],
        },
        "yaxis": {"range": [0, top * 1.12], "nticks": 6},
        "legend": LEGEND,
        "shapes": [level(1)],
        "annotations": [heading(_("Speed against plain decoding, by k"), 1)],
    }
    return {"data": data, "layout": layout}


def level(height: float) -> dict[str, Any]:
    """A thin line across the panel: plain decoding."""
    place = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height}
    return place | {"line": {"color": "$4", "width": 1.5}}


def _line(
    rows: Sequence[ForecastRow],
    heights: Sequence[float | None],
    name: str,
    colour: str,
    dash: str,
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [str(row.k) for row in rows],
        "y": heights,
        "line": {"color": colour, "width": 2.5, "dash": dash},
        "marker": {"size": 6, "color": colour},
        "hovertemplate": _("k = %{{x}}: {name} %{{y:.2f}} × plain<extra></extra>").format(
            name=name
        ),
    }


def alt(rows: Sequence[ForecastRow]) -> str:
    """The chart in words."""
    if not rows:
        return _("Speed against plain decoding by k: nothing is measured yet.")
    told = _("k {k}: forecast {forecast}, measured {measured}")
    shown = "; ".join(
        told.format(
            k=row.k,
            forecast="-" if row.forecast is None else f"{row.forecast:.2f}",
            measured="-" if row.speedup is None else f"{row.speedup.median:.2f}",
        )
        for row in rows
    )
    return _("Speed against plain decoding by k. {list}.").format(list=shown)


def best(rows: Sequence[ForecastRow]) -> ForecastRow | None:
    """The k that the forecast would take."""
    return next((row for row in rows if row.best), None)


def largest_miss(rows: Sequence[ForecastRow]) -> float | None:
    """How far a forecast is from what was measured, at most."""
    return max((abs(row.ratio - 1) for row in rows if row.ratio is not None), default=None)


def tiles(rows: Sequence[ForecastRow]) -> dict[str, str]:
    """The numbers beside the chart."""
    top, miss = best(rows), largest_miss(rows)
    auto = next((row.speedup for row in rows if row.k == AUTO), None)
    return {
        _("Best k, by forecast"): "-" if top is None else str(top.k),
        _("Measured there"): _times(None if top is None else top.speedup),
        _("k chosen as it goes"): _times(auto),
        _("Largest miss"): "-" if miss is None else f"{miss:.0%}",
    }


def _times(spread: Spread | None) -> str:
    return "-" if spread is None else _("{times:.2f} ×").format(times=spread.median)


def finding(rows: Sequence[ForecastRow]) -> str:
    """What the forecast says, and how right it is."""
    top, miss = best(rows), largest_miss(rows)
    if top is None or top.forecast is None:
        return _("Rounds of every k are being timed; a forecast follows in a moment.")
    words: dict[str, object] = {
        "k": top.k,
        "forecast": top.forecast,
        "flat": top.flat,
        "cost": top.call_cost,
    }
    words |= {"n": int(top.k) + 1}
    if top.speedup is None or miss is None:
        return _(
            "The forecast: k = {k} is best, at {forecast:.2f} times plain speed. Checking {n} "
            "tokens costs {cost:.2f} steps; if it cost one, {flat:.2f} could be had."
        ).format(**words)
    words |= {"measured": top.speedup.median, "miss": f"{miss:.0%}"}
    if top.forecast > 1:
        sentence = _(
            "The forecast said k = {k}, at {forecast:.2f} times plain speed; measured is "
            "{measured:.2f}. Checking {n} tokens costs {cost:.2f} steps; if it cost one, "
            "{flat:.2f} could be had. Over all k the forecast is off by at most {miss}."
        )
    else:
        sentence = _(
            "The forecast said that no k wins: the best, k = {k}, at {forecast:.2f} times plain "
            "speed; measured is {measured:.2f}. Checking {n} tokens costs {cost:.2f} steps; if it "
            "cost one, {flat:.2f} could be had. Over all k the forecast is off by at most {miss}."
        )
    return sentence.format(**words)


FORMULA = (
    r"\text{speed-up} = \frac{\text{tokens per call}}{T(k{+}1) + k\,c \;+\; a + r + k\,s + S_k u}"
)


def formula(record: ForecastRecord, rows: Sequence[ForecastRow]) -> tuple[str, ...]:
    """The forecast of the best k with its numbers, but for prefill, rounds without proposals and
    a text's last ones."""
    top = best(rows)
    if top is None:
        return (FORMULA,)
    k, costs = int(top.k), record.costs
    kept_all = record.survival(k)
    cost = costs.round(k) + kept_all * costs.catch_up
    return (
        FORMULA,
        rf"\frac{{{top.tokens_per_call:.2f}}}{{{costs.verification[k + 1]:.2f} + {k} \cdot "
        rf"{costs.c:.3f} + {costs.asking:.3f} + {costs.per_round:.3f} + {k} \cdot "
        rf"{costs.per_proposal:.3f} + {kept_all:.2f} \cdot {costs.catch_up:.3f}}} "
        rf"= {(top.tokens_per_call or 0) / cost:.2f}",
    )


def cost_rows(costs: Costs) -> list[tuple[str, str, str]]:
    """Every cost with its letter, its value in steps and what it is."""
    calls = ", ".join(f"{n}: {cost:.2f}" for n, cost in costs.verification.items())
    return [
        ("T(n)", calls, _("a target call of n tokens; a step is a token of plain decoding")),
        ("c", f"{costs.c:.3f}", _("drafting one token")),
        ("a", f"{costs.asking:.3f}", _("asking the drafter, and telling it what was decided")),
        ("r", f"{costs.per_round:.3f}", _("judging a round, beside the calls")),
        ("s", f"{costs.per_proposal:.3f}", _("judging one proposal more")),
        ("u", f"{costs.catch_up:.3f}", _("feeding the draft a last proposal that was kept")),
        ("v", f"{costs.silent:.3f}", _("a round without proposals, more than a plain step and a")),
        ("b", f"{costs.cold:.3f}", _("a first round, more than those behind it: cold caches")),
        ("d", f"{costs.reading:.3f}", _("a draft behind a pause (k auto): reading what it missed")),
        ("e", f"{costs.resuming:.3f}", _("plain steps behind a round (k auto): cold caches again")),
    ]
