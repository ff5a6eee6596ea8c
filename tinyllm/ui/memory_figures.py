"""Charts of the memory calculator as plain Plotly dicts: growth, capacity, comparison.

Bytes are drawn in GiB. Layers of each kind are stacked on the weights; what is reserved and what
the GPU has are lines over them. Colours are palette names, as in figures.py.
"""

import math
from collections.abc import Sequence
from typing import Any

from tinyllm.memory.assessment import Assessment
from tinyllm.memory.curves import Capacity, Growth
from tinyllm.memory.gpus import GIBIBYTE
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _

_MARGIN = {"l": 8, "r": 8, "t": 24, "b": 8}
_HIGHEST = 3  # times the GPU's memory that the chart shows
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x")
_NAMES = {
    "full": _("full attention"),
    "window": _("sliding windows"),
    "chunk": _("chunked attention"),
    "cross": _("cross attention"),
    "latent": _("latent attention (MLA)"),
    "index": _("index keys"),
    "compressed": _("compressed attention"),
    "state": _("states"),
}


def kind_name(kind: str) -> str:
    """A kind of layer in words."""
    return _NAMES[kind]


def growth_figure(growth: Growth, assessment: Assessment) -> Figure:
    """Memory against context: weights, then each kind of layer, with the GPU's line."""
    here, choice = assessment.room, assessment.choice
    tokens = list(growth.tokens)
    weights = (here.weight_bytes or 0) / GIBIBYTE
    data = [_area(tokens, [weights] * len(tokens), _("weights"), "$4", 0.22)]
    below = [weights] * len(tokens)
    for number, (kind, sizes) in enumerate(growth.kinds.items()):
        data.append(_area(tokens, [size / GIBIBYTE for size in sizes], _NAMES[kind], f"${number}"))
        below = [low + size / GIBIBYTE for low, size in zip(below, sizes, strict=True)]
    reserved = [None if one is None else weights + one / GIBIBYTE for one in growth.reserved]
    data.append(_line(tokens, reserved, _("reserved"), "$text", "dash"))
    device = here.memory_bytes / GIBIBYTE
    at = tokens.index(choice.context)
    data.append(_point(choice.context, below[at], _("this choice"), "$text"))
    top = max(device, min(below[at], _HIGHEST * device)) * 1.12
    name = here.device.name if here.gpus == 1 else f"{here.gpus} × {here.device.name}"
    layout = _layout(_("Memory against context, GiB"), tokens[-1], [0, top])
    layout["shapes"] = [_level(device, "$1", "solid"), _level(here.usable_bytes / GIBIBYTE, "$1")]
    layout["annotations"] += [_level_name(name, device)]
    if below[at] > top:
        off = _("▲ {size:,.0f} GiB").format(size=below[at])
        place = {"x": choice.context, "y": top, "yanchor": "top", "showarrow": False}
        layout["annotations"] += [place | {"text": off}]
    return {"data": data, "layout": layout}


def _area(
    x: Sequence[int], y: Sequence[float], name: str, colour: str, fill: float = 0.45
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "stackgroup": "memory",
        "x": x,
        "y": y,
        "name": name,
        "line": {"width": 1.5, "color": colour},
        "fillcolor": f"{colour}/{fill}",
        "hovertemplate": _("{name}: %{{y:.2f}} GiB<extra></extra>").format(name=name),
    }


def _line(
    x: Sequence[int], y: Sequence[float | None], name: str, colour: str, dash: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": name,
        "line": {"width": 2, "color": colour, "dash": dash},
        "hovertemplate": _("{name}: %{{y:.2f}} GiB<extra></extra>").format(name=name),
    }


def _point(x: float, y: float, name: str, colour: str) -> dict[str, Any]:
    ring = {"width": 2.5, "color": colour}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [x],
        "y": [y],
        "name": name,
        "showlegend": False,
        "marker": {"symbol": "diamond-open", "size": 13, "color": colour, "line": ring},
        "hoverinfo": "skip",
    }


def _level(height: float, colour: str, dash: str = "dot") -> dict[str, Any]:
    """A horizontal line over the whole width."""
    place = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height}
    return place | {"line": {"color": colour, "width": 2, "dash": dash}}


def _level_name(text: str, height: float) -> dict[str, Any]:
    place = {"xref": "paper", "x": 0.995, "xanchor": "right", "y": height, "yanchor": "bottom"}
    look = {"showarrow": False, "font": {"color": "$1"}, "bgcolor": "$background/0.8"}
    return place | look | {"text": text}


def _heading(text: str) -> dict[str, Any]:
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left"}
    return place | {"yanchor": "bottom", "text": f"<b>{text}</b>", "showarrow": False}


def _layout(heading: str, right: int, height: Sequence[float]) -> dict[str, Any]:
    return {
        "margin": _MARGIN,
        "hovermode": "x unified",
        "dragmode": False,
        "xaxis": {"range": [0, right], "title": {"text": _("context, tokens")}, "tickformat": ","},
        "yaxis": {"range": list(height), "nticks": 6},
        "legend": {"x": 0.01, "y": 0.98, "yanchor": "top", "bgcolor": "$background/0.8"},
        "annotations": [_heading(heading)],
        "showlegend": True,
    }


def capacity_figure(capacity: Capacity, assessment: Assessment) -> Figure:
    """Requests that fit against context, both logarithmic, with the chosen point."""
    choice, fits = assessment.choice, assessment.fits
    pairs = [
        (tokens, requests)
        for tokens, requests in zip(capacity.tokens, capacity.requests, strict=True)
        if requests
    ]
    curve = {
        "type": "scatter",
        "mode": "lines",
        "x": [tokens for tokens, _requests in pairs],
        "y": [requests for _tokens, requests in pairs],
        "fill": "tozeroy",
        "fillcolor": "$2/0.16",
        "line": {"color": "$2", "width": 2.5},
        "showlegend": False,
        "hovertemplate": _("%{x:,} tokens: %{y:,} requests fit<extra></extra>"),
    }
    inside = fits is not None and choice.requests <= fits
    point = _point(choice.context, choice.requests, _("this choice"), "$2" if inside else "$1")
    word = _("fits") if inside else _("does not fit") if fits is not None else _("this choice")
    most = max([choice.requests, *(requests for _tokens, requests in pairs), 10])
    layout = _layout(_("Requests that fit at once"), 0, [0, 0])
    layout |= {"hovermode": "closest"}
    layout["xaxis"] = {
        "type": "log",
        "title": {"text": _("context, tokens")},
        "tickvals": [2**power for power in range(8, 25, 2)],
        "ticktext": [
            f"{2**power // 1024}K" if power > 9 else str(2**power) for power in range(8, 25, 2)
        ],
        "range": _decades(capacity.tokens[0] * 0.9, capacity.tokens[-1] * 1.5),
    }
    layout["yaxis"] = {"type": "log", "range": _decades(0.7, most * 1.6), "dtick": 1}
    layout["annotations"] += [
        {
            **{"x": _log(choice.context), "y": _log(choice.requests), "text": word},
            **{"showarrow": False, "yshift": 16, "font": {"color": point["marker"]["color"]}},
            "xanchor": "right" if 2 * choice.context > capacity.tokens[-1] else "center",
        }
    ]
    return {"data": [curve, point], "layout": layout}


def _log(value: float) -> float:
    return math.log10(value)


def _decades(low: float, high: float) -> list[float]:
    return [_log(low), _log(high)]


def compare_figure(rows: Sequence[tuple[str, Growth]], unit: str) -> Figure:
    """All that a cache holds against context, a line for each choice."""
    data = []
    for place, (name, growth) in enumerate(rows):
        sums = [sum(column) / GIBIBYTE for column in zip(*growth.kinds.values(), strict=True)]
        line = _line(list(growth.tokens), sums, name, f"${place}", _DASHES[place])
        marker = {"symbol": _SYMBOLS[place], "size": 6, "maxdisplayed": 8}
        data.append(line | {"mode": "lines+markers", "marker": marker})
    right = max((growth.tokens[-1] for _name, growth in rows), default=1)
    layout = _layout(unit, right, [0, 1])
    del layout["yaxis"]["range"]
    return {"data": data, "layout": layout | {"dragmode": "zoom"}}
