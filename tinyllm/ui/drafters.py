"""How the drafters page draws and tells: its controls, the bars, the table and the sentences."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from tinyllm.experiments.drafters import DrafterRow, DraftersConfig, DraftersRecord
from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.prompts import COPYING_PROMPT
from tinyllm.experiments.timing import Spread
from tinyllm.ui import widgets
from tinyllm.ui.figures import MARGIN, heading, quartiles
from tinyllm.ui.findings import NO_DIFFERENCE
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, format_bytes

MAIN, MORE = ("target", "k", "temperature"), ("width", "verify", "prompt", "tokens", "seed")
NAMES = {
    "draft": _("draft model"),
    "ngram": _("prompt lookup"),
    "draft-ngram": _("lookup, else draft"),
    "early-exit": _("first half of the layers"),
    "heads": _("heads on the last state"),
    "draft-tree": _("draft model, as a tree"),
    "heads-tree": _("heads, as a tree"),
}
COPYING = DraftersConfig(prompt=COPYING_PROMPT, temperature=0.0)
_PANELS = ((0, 0.58), (0.66, 1))  # of the chart's width: speed, tokens per call


def _target() -> Any:
    text = _("Which trained model is sped up. Every drafter below drafts for this one.")
    return widgets.choice("target", _("Target"), text, DraftersConfig)


def _verify() -> Any:
    text = _(
        "Accept proposals one by one, or judge a round's proposals as a block, which keeps at "
        "least as many on average; trees only one by one. The law is the target's either way."
    )
    return widgets.choice("verify", _("Verify by"), text, DraftersConfig)


def page_widgets(model: ModelChoice) -> widgets.Widgets:
    """The page's controls by field; all targets share the default model's."""
    slider = partial(widgets.slider, kind=DraftersConfig)
    own: dict[str, Callable[[], Any]] = {
        "target": _target,
        "verify": _verify,
        "width": lambda: slider(
            "width",
            _("Tree width"),
            1,
            _("How many candidates a tree has for every place; the target checks them all."),
        ),
        "k": lambda: slider(
            "k", _("k, proposals a round"), 1, _("How many tokens a drafter proposes at most.")
        ),
    }
    return dict(widgets.run_widgets(model)) | own


def figure(rows: Sequence[DrafterRow]) -> Figure:
    """A bar for each drafter: speed against plain with its quartiles, and tokens per call."""
    names = [NAMES[row.drafter] for row in rows]
    speeds = [row.speedup for row in rows]
    speed = _bars(names, [one.median for one in speeds], "x", "$0") | {
        "text": [f"{one.median:.2f} ×" for one in speeds],
        "error_x": quartiles(speeds, "$text"),
        # Inside, at the foot: the end belongs to the quartiles.
        "insidetextanchor": "start",
        "hovertemplate": _("%{y}: %{x:.2f} × plain<extra></extra>"),
    }
    calls = _bars(names, [row.tokens_per_call for row in rows], "x2", "$2") | {
        "text": [f"{row.tokens_per_call:.2f}" for row in rows],
        "hovertemplate": _("%{y}: %{x:.2f} tokens per target call<extra></extra>"),
        "marker": {"color": "$2/0.35", "line": {"color": "$2", "width": 1.5}},
    }
    even = {"x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "type": "line"}
    dashed = {"line": {"color": "$text", "width": 1.5, "dash": "dash"}}
    panels = [
        # Short, at either end, the first partly above the names: on a phone the panels are narrow.
        heading(_("Speed, plain = 1"), 1) | {"xshift": -70},
        heading(_("Tokens per call"), 1) | {"x": 1, "xanchor": "right"},
    ]
    top = max([1.2, *(one.high for one in speeds)])
    layout = {
        "margin": MARGIN,
        "bargap": 0.35,
        "showlegend": False,
        "xaxis": {"domain": _PANELS[0], "range": [0, top * 1.05]},
        "xaxis2": {"domain": _PANELS[1], "rangemode": "tozero", "anchor": "y"},
        "yaxis": {"type": "category", "autorange": "reversed", "showgrid": False},
        "annotations": panels,
        "shapes": [even | dashed],
    }
    return {"data": [speed, calls], "layout": layout}


def _bars(names: Sequence[str], values: Sequence[float], axis: str, colour: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": values,
        "xaxis": axis,
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "textfont": {"color": "$text"},
        "marker": {"color": f"{colour}/0.35", "line": {"color": colour, "width": 1.5}},
    }


def alt(rows: Sequence[DrafterRow]) -> str:
    """The chart in words."""
    shown = "; ".join(
        _("{name}: {speed:.2f} times plain speed, {calls:.2f} tokens per target call").format(
            name=NAMES[row.drafter], speed=row.speedup.median, calls=row.tokens_per_call
        )
        for row in rows
    )
    return _("Every drafter on the same prompt. {rows}.").format(rows=shown)


def table(rows: Sequence[DrafterRow]) -> None:
    """A line for each drafter, as text."""
    columns = {
        _("drafter"): [NAMES[row.drafter] for row in rows],
        _("tokens per call"): [f"{row.tokens_per_call:.2f}" for row in rows],
        _("α, accepted / tested"): [_share(row.acceptance_rate) for row in rows],
        _("c, a proposal in steps"): [_number(row.c) for row in rows],
        _("speed against plain"): [_spread(row.speedup) for row in rows],
        _("weights"): [format_bytes(row.weights_bytes) for row in rows],
        _("cache or text"): [format_bytes(row.state_bytes) for row in rows],
    }
    st.table(pd.DataFrame(columns).set_index(_("drafter")))


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _number(spread: Spread | None) -> str:
    return "-" if spread is None else f"{spread.median:.2f}"


def _spread(one: Spread) -> str:
    return f"{one.median:.2f} × ({one.low:.2f} – {one.high:.2f})"


def _best(rows: Sequence[DrafterRow]) -> DrafterRow:
    return max(rows, key=lambda row: row.speedup.median)


def _round_steps(row: DrafterRow) -> float:
    """What a round takes, drafting, checking and all else, in steps of plain decoding."""
    return row.tokens_per_call / row.speedup.median


def tiles(record: DraftersRecord) -> dict[str, str]:
    """The numbers beside the chart."""
    rows = record.rows
    if not rows:
        return {_("Fastest here"): "-"}
    best = _best(rows)
    fastest = _("Fastest: {name}").format(name=NAMES[best.drafter])
    found = {fastest: f"{best.speedup.median:.2f} ×"}
    same = [row.identical for row in rows if row.identical is not None]
    if same:
        found[_("Texts as plain")] = _("{same} of {all}").format(same=sum(same), all=len(same))
    return found


def finding(record: DraftersRecord) -> str:
    """Which drafter is fastest on this prompt, and why not the one with the most per call."""
    rows = record.rows
    if not rows:
        return _("Every drafter decodes the same prompt, in turn with plain decoding.")
    best = _best(rows)
    most = max(rows, key=lambda row: row.tokens_per_call)
    words = {
        "best": NAMES[best.drafter],
        "speed": best.speedup.median,
        "calls": best.tokens_per_call,
        "most": NAMES[most.drafter],
        "most_calls": most.tokens_per_call,
        "most_round": _round_steps(most),
        "best_round": _round_steps(best),
        "best_c": 0.0 if best.c is None else best.c.median,
    }
    if best.speedup.median < 1 - NO_DIFFERENCE:
        sentence = _(
            "None wins on this prompt: the fastest, {best}, makes {calls:.2f} tokens per target "
            "call and still runs at {speed:.2f} times plain speed, as checking and drafting cost "
            "more than the calls they save."
        )
    elif best.tokens_per_call == most.tokens_per_call:  # also where two have as many
        sentence = _(
            "The fastest, {best}, also makes the most tokens per target call, {calls:.2f}: "
            "{speed:.2f} times plain speed, at {best_c:.2f} steps a proposal."
        )
    else:
        sentence = _(
            "The fastest, {best}, runs at {speed:.2f} times plain speed with {calls:.2f} tokens "
            "per target call. The most, {most_calls:.2f}, come from another, {most}, but a round "
            "there, drafted and checked, costs {most_round:.2f} steps, against {best_round:.2f}."
        )
    return sentence.format(**words)


def formula(record: DraftersRecord, k: int) -> tuple[str, ...]:
    """What a round costs, with the fastest drafter's numbers."""
    symbols = (
        r"\text{speed-up} = \frac{\text{tokens per call}}"
        r"{c \cdot \text{proposals a round} + \text{the target's call and all else, in steps}}"
    )
    if not record.rows:
        return (symbols,)
    best = _best(record.rows)
    # The last number is what is left of the time: the target's call and the loop's own work.
    spent = _round_steps(best)
    drafting = (0.0 if best.c is None else best.c.median) * best.proposed_per_round
    return (
        symbols,
        rf"{best.speedup.median:.2f} = \frac{{{best.tokens_per_call:.2f}}}"
        rf"{{{drafting:.2f} + {spent - drafting:.2f}}} \qquad k = {k}",
    )
