"""How the sweep page draws and tells: speed-up over k and temperature, and what a call costs."""

from collections.abc import Sequence
from typing import Any

from tinyllm.experiments.call_cost import WIDTHS, CallCost, costs_of
from tinyllm.experiments.sweep import KS, TEMPERATURES, SweepRecord, SweepRow
from tinyllm.ui.figures import MARGIN, heading, quartiles
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _

_WORST, _BEST = 0.5, 1.5  # of the colours; a speed-up beyond them shows as they do


def heat_figure(record: SweepRecord) -> Figure:
    """A cell for each k and temperature: its speed-up, written in it. Blank: not yet measured."""
    rows = [[record.rows.get((t, k)) for k in KS] for t in TEMPERATURES]
    speeds = [[None if one is None else one.speedup.median for one in line] for line in rows]
    heat = {
        "type": "heatmap",
        "x": [str(k) for k in KS],
        "y": [_("T = {temperature:g}").format(temperature=one) for one in TEMPERATURES],
        "z": [[None if one is None else round(one, 3) for one in line] for line in speeds],
        "text": [[_cell(one) for one in line] for line in rows],
        "customdata": [[_details(one) for one in line] for line in rows],
        "texttemplate": "%{text}",
        "textfont": {"color": "$text", "size": 13},
        "hovertemplate": "%{customdata}<extra></extra>",
        "zmin": _WORST,
        "zmax": _BEST,
        "colorscale": [[0, "$1/0.75"], [0.5, "$4/0.08"], [1, "$2/0.75"]],
        "showscale": False,
        "xgap": 3,
        "ygap": 3,
        "hoverongaps": False,
    }
    layout = {
        "margin": MARGIN,
        "xaxis": {
            "title": {"text": _("k, proposals a round")},
            "type": "category",
            "showgrid": False,
        },
        "yaxis": {"type": "category", "showgrid": False, "autorange": "reversed"},
        "annotations": [heading(_("Speed against plain: green wins"), 1)],
    }
    return {"data": [heat], "layout": layout}


def _cell(row: SweepRow | None) -> str:
    if row is None:
        return ""
    spread = row.speedup
    shown = f"<b>{spread.median:.2f} ×</b>"
    # Below each other, so that a cell is legible on a phone.
    return shown if spread.count < 2 else f"{spread.high:.2f}<br>{shown}<br>{spread.low:.2f}"


def _details(row: SweepRow | None) -> str:
    if row is None:
        return ""
    return _(
        "k = {k}, T = {temperature:g}: {speedup:.2f} × plain<br>"
        "accepted / tested {alpha:.1%}, accepted / proposed {share:.1%}<br>"
        "{calls:.2f} tokens per target call, Eq. 1 says {equation:.2f}<br>"
        "{flat:.2f} × if checking cost one step, {measured:.2f} × with its measured cost"
    ).format(
        k=row.k,
        temperature=row.temperature,
        speedup=row.speedup.median,
        alpha=row.alpha,
        share=row.accepted_per_proposed,
        calls=row.tokens_per_call,
        equation=row.equation_1,
        flat=row.ideal_flat,
        measured=row.ideal_measured,
    )


def cost_figure(costs: Sequence[CallCost]) -> Figure:
    """Cost of a target call against its tokens, in steps: measured, one step, and n steps."""
    rows = [row for row in costs if row.role == "target"]
    widths = [row.tokens for row in rows]
    measured = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": _("measured"),
        "x": widths,
        "y": [row.steps.median for row in rows],
        "error_y": quartiles([row.steps for row in rows], "$0"),
        "line": {"color": "$0", "width": 2.5},
        "marker": {"size": 7, "color": "$0"},
        "hovertemplate": _("%{x} tokens: %{y:.2f} steps<extra></extra>"),
    }

    def bound(heights: Sequence[float], name: str, colour: str, dash: str) -> dict[str, Any]:
        line = {"color": colour, "width": 2, "dash": dash}
        series = {"type": "scatter", "mode": "lines", "name": name, "x": widths, "y": heights}
        return series | {"line": line, "hoverinfo": "skip"}

    # A busy machine's worst calls may leave the picture; the curve does not.
    top = max([0.7 * max(widths), *(row.steps.median for row in rows)])
    layout = {
        "margin": MARGIN,
        "xaxis": {"title": {"text": _("tokens in one target call")}, "rangemode": "tozero"},
        "yaxis": {"range": [0, top * 1.1], "nticks": 6},
        "legend": {"x": 0.02, "y": 0.98, "xanchor": "left", "yanchor": "top"},
        "annotations": [heading(_("Cost of a call, in steps of one token"), 1)],
    }
    data = [
        bound([1] * len(widths), _("one step, as Theorem 3.8 takes it"), "$2", "dash"),
        bound(list(map(float, widths)), _("as many steps as tokens"), "$1", "dot"),
        measured,
    ]
    return {"data": data, "layout": layout}


def best(record: SweepRecord) -> SweepRow | None:
    """The cell with the largest speed-up so far."""
    return max(record.rows.values(), key=lambda row: row.speedup.median, default=None)


def heat_alt(record: SweepRecord) -> str:
    """The map in words."""
    cells = "; ".join(
        f"k {row.k}, T {row.temperature:g}: {row.speedup.median:.2f}"
        for row in record.rows.values()
    )
    return _("Speed against plain decoding by k and temperature. {cells}.").format(cells=cells)


def cost_alt(costs: Sequence[CallCost]) -> str:
    """The cost curve in words."""
    shown = "; ".join(
        f"{row.tokens}: {row.steps.median:.2f}" for row in costs if row.role == "target"
    )
    return _("Cost of a target call in steps, by its tokens. {list}.").format(list=shown)


def finding(record: SweepRecord) -> str:
    """Where drafting wins, and what the calls have to do with it."""
    top = best(record)
    costs = costs_of(record.costs)
    if top is None:
        return _(
            "A draft call costs {c:.2f} of a target step, and a target call of {n} tokens "
            "{cost:.2f} steps. The map fills in as prompts are decoded."
        ).format(c=costs.c, n=WIDTHS[-1], cost=costs.verification[WIDTHS[-1]])
    words = {
        "wins": sum(row.speedup.median > 1 for row in record.rows.values()),
        "cells": len(record.rows),
        "k": top.k,
        "temperature": top.temperature,
        "speedup": top.speedup.median,
        "flat": top.ideal_flat,
        "measured": top.ideal_measured,
        "n": top.k + 1,
        "cost": costs.verification[top.k + 1],
    }
    if top.speedup.median > 1:
        sentence = _(
            "Drafting wins in {wins} of {cells} cells. At its best, k = {k} and "
            "T = {temperature:g}, it runs at {speedup:.2f} times plain speed. If checking {n} "
            "tokens cost one step, theory would promise {flat:.2f}; it costs {cost:.2f} steps, "
            "which leaves {measured:.2f}."
        )
    else:
        sentence = _(
            "Drafting wins nowhere here: at its best, k = {k} and T = {temperature:g}, it runs at "
            "{speedup:.2f} times plain speed. If checking {n} tokens cost one step, theory would "
            "promise {flat:.2f}; it costs {cost:.2f} steps, which leaves {measured:.2f}."
        )
    return sentence.format(**words)


def tiles(record: SweepRecord) -> dict[str, str]:
    """The numbers beside the charts."""
    top = best(record)
    greedy = [row.identical for row in record.rows.values() if row.identical is not None]
    return {
        _("Best cell"): "-" if top is None else _("{:.2f} ×").format(top.speedup.median),
        _("Cost of a draft call, c"): f"{costs_of(record.costs).c:.2f}",
        _("Greedy texts as plain"): _("{same} of {cells}").format(
            same=sum(greedy), cells=len(greedy)
        ),
    }


def formula(record: SweepRecord) -> tuple[str, ...]:
    """The two forecasts with the best cell's numbers."""
    symbols = (
        r"\text{speed-up} = \frac{1 - \alpha^{k+1}}{1 - \alpha} \bigg/ "
        r"\left( k\,c + \frac{T(k+1)}{T(1)} \right)"
    )
    top = best(record)
    if top is None:
        return (symbols,)
    costs = costs_of(record.costs)
    cost = costs.verification[top.k + 1]
    return (
        symbols,
        rf"\frac{{{top.equation_1:.2f}}}{{{top.k} \cdot {costs.c:.2f} + {cost:.2f}}} "
        rf"= {top.ideal_measured:.2f} \qquad "
        rf"\frac{{{top.equation_1:.2f}}}{{{top.k} \cdot {costs.c:.2f} + 1}} = {top.ideal_flat:.2f}"
        rf"\qquad \text{{measured: }} {top.speedup.median:.2f}",
    )
