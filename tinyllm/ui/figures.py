"""The charts as plain Plotly dicts: data in, figure out, nothing drawn.

Colours are palette names that the browser fills in from the theme ("$0" blue, "$1" orange,
"$2" green, "$3" purple, "$4" grey; "$1/0.3" is thirty per cent opaque). At most three series a
panel, one y axis each, and every series has its own dash or marker beside its hue.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.experiments.kv_cache import CacheRow
from tinyllm.experiments.settings import RANGES, RunConfig
from tinyllm.experiments.speculative import CacheSpan
from tinyllm.experiments.speculative_record import Record, RoundRow
from tinyllm.experiments.timing import Spread
from tinyllm.speculative import Counters, theory
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, format_count

_YARDSTICK = 32  # positions whose mean key length is each head's measure
_DARKEST = 2.5  # times that measure
MARGIN = {"l": 8, "r": 8, "t": 22, "b": 8}
# Looks of times(), the same on every page: the plain way, one in between, and the fast way.
SLOW = {"colour": "$1", "symbol": "circle", "dash": "dash"}
BETWEEN = {"colour": "$2", "symbol": "square", "dash": "dot"}
FAST = {"colour": "$0", "symbol": "diamond", "dash": "solid"}


def heading(text: str, y: float) -> dict[str, Any]:
    """A panel's title at its upper left corner."""
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": y, "xanchor": "left"}
    return place | {"yanchor": "bottom", "text": f"<b>{text}</b>", "showarrow": False}


def line(x: Sequence[float], y: Sequence[float | None], hover: str, **line: Any) -> dict[str, Any]:
    """A line without an entry in a legend; the panel's title names it."""
    series = {"type": "scatter", "mode": "lines", "showlegend": False, "x": x, "y": y}
    return series | {"line": {"width": 2.5} | line, "hovertemplate": hover + "<extra></extra>"}


def quartiles(spreads: Sequence[Spread], colour: str, scale: float = 1.0) -> dict[str, Any]:
    """Error bars from the lower to the upper quartile of spreads whose medians are drawn."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [(one.high - one.median) * scale for one in spreads],
        "arrayminus": [(one.median - one.low) * scale for one in spreads],
        "thickness": 1.5,
        "width": 3,
        "color": colour,
    }


def rounds_figure(rows: Sequence[RoundRow], config: RunConfig, cache: CacheSpan) -> Figure:
    """Acceptance rate, tokens per target call and cache memory, against tokens made.

    `cache` is what the cache will hold, which fixes its axis.
    """
    made = [row.made for row in rows]
    rate = [row.counters.acceptance_rate for row in rows]
    per_call = [row.counters.tokens_per_call for row in rows]
    # A saw-tooth: every call fills the cache up to its peak, rejection empties it again.
    saw_x = [x for row in rows for x in (row.made, row.made)]
    saw_y = [y / 1024 for row in rows for y in (row.peak_bytes, row.used_bytes)]
    empty, full = cache.first / 1024, cache.last / 1024
    data = [
        line(made, rate, _("%{y:.0%} of tested proposals accepted"), color="$2"),
        line(made, per_call, _("%{y:.2f} tokens per target call"), color="$0", dash="dash"),
        line(saw_x, saw_y, _("%{y:.1f} KiB"), color="$3", width=1.5),
    ]
    data[1]["yaxis"], data[2]["yaxis"] = "y2", "y3"
    layout = {
        "margin": MARGIN,
        "hovermode": "x unified",
        "xaxis": {"range": [0, config.tokens], "title": {"text": _("tokens made")}, "anchor": "y3"},
        "yaxis": {"domain": [0.74, 1], "range": [0, 1.05], "tickformat": ".0%", "nticks": 3},
        "yaxis2": {"domain": [0.37, 0.63], "range": [0, config.k + 1.2], "nticks": 4},
        "yaxis3": {"domain": [0, 0.26], "range": [empty * 0.97, full * 1.03], "nticks": 3},
        "annotations": [
            heading(_("Acceptance rate (accepted / tested)"), 1),
            heading(_("Tokens per target call"), 0.63),
            heading(
                _("Target's KV cache, KiB ({each} bytes a token)").format(
                    each=format_count(cache.per_token)
                ),
                0.26,
            ),
        ],
    }
    return {"data": data, "layout": layout}


def curve_figure(record: Record, k: int) -> Figure:
    """Tokens per target call against k: Eq. 1 at all points' alpha, the points, and this run."""
    points = list(record.points.values())
    here = record.counters.tokens_per_call
    alpha = record.pooled_alpha or record.counters.acceptance_rate or 0.0
    low, high = RANGES["k"]
    ks = list(range(int(low), int(high) + 1))
    curve = [theory.tokens_per_call(alpha, one) for one in ks]
    formula = line(ks, curve, _("Eq. 1 at k = %{x:.0f}: %{y:.2f}"), color="$1", dash="dash")
    formula |= {"name": _("Eq. 1 at α = {alpha:.2f}").format(alpha=alpha), "showlegend": True}
    measured = _points([(one.k, one.counters) for one in points]) | {
        "name": _("measured, {count} runs each").format(count=record.runs_per_k),
        "marker": {"color": "$0", "size": 9},
    }
    ring = {"width": 2.5, "color": "$2"}
    this_run = _points([] if here is None else [(k, record.counters)]) | {
        "name": _("this run"),
        "marker": {"color": "$2", "size": 14, "symbol": "diamond-open", "line": ring},
    }
    top = max([2.0, *curve, *(y for y in (*measured["y"], here) if y is not None)])
    layout = {
        "margin": MARGIN,
        "xaxis": {"title": {"text": _("k, proposals a round")}, "dtick": 1, "range": [0.6, 8.4]},
        "yaxis": {"range": [0, top * 1.12]},
        "legend": {"x": 0.98, "y": 0.03, "xanchor": "right", "yanchor": "bottom"},
        "annotations": [heading(_("Tokens per target call, by k"), 1)],
    }
    return {"data": [formula, measured, this_run], "layout": layout}


def _points(counted: Sequence[tuple[int, Counters]]) -> dict[str, Any]:
    """Markers at k and tokens per call; the acceptance rate shows on hover."""
    return {
        "type": "scatter",
        "mode": "markers",
        "showlegend": True,
        "x": [k for k, _counters in counted],
        "y": [counters.tokens_per_call for _k, counters in counted],
        "customdata": [counters.acceptance_rate for _k, counters in counted],
        "hovertemplate": _(
            "k = %{x}: %{y:.2f} tokens per call<br>accepted / tested %{customdata:.0%}"
            "<extra></extra>"
        ),
    }


def cache_figure(rows: Sequence[CacheRow], shape: ModelConfig, last: int) -> Figure:
    """Step time with and without the cache against position; below, the cache filling up."""
    heads = shape.n_kv_head
    head_rows = shape.n_layer * heads
    positions = [row.position for row in rows]
    cached = [row.cached_seconds for row in rows]
    uncached = [row.uncached_seconds for row in rows]
    hover = _("position %{x}: %{y:.3f} ms")
    data = [
        times(_("recomputing everything"), positions, uncached, hover, **SLOW),
        times(_("with the cache"), positions, cached, hover, **FAST),
        _fill(rows, last, head_rows, heads),
    ]
    slowest = max((one.high for one in uncached), default=1e-3) * 1000
    layout = {
        "margin": MARGIN,
        "hovermode": "closest",
        "showlegend": True,
        "legend": {"x": 0.01, "y": 0.97, "yanchor": "top", "bgcolor": "$background/0.6"},
        "xaxis": {"range": [0, last], "title": {"text": _("position")}, "anchor": "y2"},
        "yaxis": {
            "domain": [0.42, 1],
            "range": [0, slowest * 1.1],
            "rangemode": "tozero",
            "ticksuffix": " ms",
        },
        "yaxis2": {
            "domain": [0, 0.29],
            "type": "category",
            "range": [head_rows - 0.5, -0.5],
            "tickvals": [heads * layer + (heads - 1) / 2 for layer in range(head_rows // heads)],
            "ticktext": [
                _("layer {number}").format(number=layer + 1) for layer in range(head_rows // heads)
            ],
            "showgrid": False,
        },
        "annotations": [
            heading(_("Time of one step"), 1),
            heading(_("The cache filling up, by layer and KV head"), 0.29),
        ],
    }
    return {"data": data, "layout": layout}


def times(
    name: str,
    x: Sequence[int],
    spreads: Sequence[Spread],
    hover: str,
    *,
    colour: str,
    symbol: str,
    dash: str,
) -> dict[str, Any]:
    """A curve of medians in ms with their quartiles; the spreads are of seconds."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": [one.median * 1000 for one in spreads],
        "error_y": quartiles(spreads, colour, 1000),
        "line": {"color": colour, "width": 2.5, "dash": dash},
        "marker": {"symbol": symbol, "size": 8, "color": colour},
        "hovertemplate": f"{hover}<extra></extra>",
    }


def _fill(rows: Sequence[CacheRow], last: int, head_rows: int, heads: int) -> dict[str, Any]:
    """A cell for every layer, KV head and position held; empty where nothing is stored yet.

    What a shade means is fixed with the first positions, so that a cell keeps its shade while
    others join it. The few keys that are longer than the scale have its darkest.
    """
    grid = np.full((head_rows, last), np.nan)
    at = 0
    for row in rows:
        width = row.fill.shape[1]
        grid[:, at : at + width] = row.fill
        at += width
    if at:  # heads differ more than positions do
        grid /= np.nanmean(grid[:, :_YARDSTICK], axis=1, keepdims=True)
    cells = np.round(grid, 2).astype(object)
    cells[np.isnan(grid)] = None
    names = [
        _("layer {layer}, KV head {head}").format(layer=index // heads + 1, head=index % heads + 1)
        for index in range(head_rows)
    ]
    return {
        "type": "heatmap",
        "z": cells.tolist(),
        "yaxis": "y2",
        "zmin": 0.0,
        "zmax": _DARKEST,
        "colorscale": [[0, "$0/0.45"], [1, "$0"]],
        "showscale": False,
        "ygap": 1,
        "y": names,
        "hovertemplate": _(
            "%{{y}}, position %{{x}}: key of %{{z:.2f}} × this head's mean length over the first "
            "{count} positions<extra></extra>"
        ).format(count=_YARDSTICK),
    }
