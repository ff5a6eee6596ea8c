"""The chart of one large channel in every head's keys, and its sentences: data in, words out."""

from collections.abc import Sequence

import streamlit as st

from tinyllm.cache import CACHE_DTYPES
from tinyllm.experiments import outliers
from tinyllm.experiments.outliers import OutlierRow
from tinyllm.model import Transformer
from tinyllm.ui import state
from tinyllm.ui.figures import MARGIN, heading
from tinyllm.ui.plot import Figure, plot
from tinyllm.ui.text import _

_DASHES = ("solid", "dash", "dot")
_ALIKE = 0.8  # of an error: from here on two are called alike


def section(target: Transformer, dtype: str, *, ready: bool) -> list[OutlierRow]:
    """The part of a page on large channels, once it is `ready` to be measured; its rows."""
    st.subheader(_("One large channel spoils a whole vector, unless it has its own scale"))
    if not ready:
        st.caption(_("Looked at when the formats are measured."))
        return []
    rows = _rows(target)
    plot(figure(rows, dtype), "outlier_chart", alt=chart(rows, dtype), height=280)
    st.markdown(notice(rows, dtype))
    return rows


def _rows(target: Transformer) -> list[OutlierRow]:
    """The rows of a model, measured once."""
    kept = state.store("outliers")
    rows: list[OutlierRow] | None = kept.get(target.name)
    if rows is None:
        with st.spinner(_("Looking at the model's keys ...")), state.turn():
            rows = list(outliers.rows(target))
        kept.put(target.name, rows)
    return rows


def family(chosen: str) -> tuple[str, ...]:
    """The formats that are compared on keys with a large channel: int8's, else int4's."""
    bits = "int8" if chosen.startswith("int8") else "int4"
    return tuple(name for name in CACHE_DTYPES if name.startswith(bits))


def figure(rows: Sequence[OutlierRow], chosen: str) -> Figure:
    """Error of the other channels against how large the large one is made."""
    data = []
    for index, dtype in enumerate(family(chosen)):
        line = [row for row in rows if row.dtype == dtype]
        colour, symbol = ("$1", "square") if index == 0 else ("$0", "circle")
        if dtype.endswith("_channel"):
            colour, symbol = "$2", "diamond"
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": dtype,
                "x": [row.factor for row in line],
                "y": [row.others_error for row in line],
                "customdata": [row.times_median for row in line],
                "line": {"color": colour, "width": 2.5, "dash": _DASHES[index]},
                "marker": {"color": colour, "symbol": symbol, "size": 8},
                "hovertemplate": _(
                    "%{fullData.name}, × %{x}: error %{y:.1%}<br>the large channel is "
                    "%{customdata:.0f} times its head\u2019s median one<extra></extra>"
                ),
            }
        )
    factors = sorted({row.factor for row in rows})
    layout = {
        "margin": MARGIN,
        "hovermode": "closest",
        "showlegend": True,
        "legend": {"x": 0.01, "y": 0.99, "yanchor": "top", "bgcolor": "$background/0.6"},
        "xaxis": {
            "type": "log",
            "tickvals": factors,
            "ticktext": [f"{factor:g}" for factor in factors],
            "title": {"text": _("factor on one channel of every head")},
        },
        "yaxis": {"rangemode": "tozero", "tickformat": ".0%"},
        "annotations": [heading(_("Error of all other channels of the keys"), 1)],
    }
    return {"data": data, "layout": layout}


def chart(rows: Sequence[OutlierRow], chosen: str) -> str:
    """The chart of the large channel in words."""
    most = max(row.factor for row in rows)
    points = ", ".join(
        f"{row.dtype}: {row.others_error:.1%}"
        for row in rows
        if row.factor == most and row.dtype in family(chosen)
    )
    return _(
        "Error of the other channels against the size of one large channel; at {most:g} times: "
        "{points}."
    ).format(most=most, points=points)


def notice(rows: Sequence[OutlierRow], chosen: str) -> str:
    """What the large channel does by token and by channel."""
    whole, *_groups, channel = family(chosen)
    found = {(row.dtype, row.factor): row for row in rows}
    most = max(row.factor for row in rows)
    own_token, own_channel = found[whole, 1].others_error, found[channel, 1].others_error
    if own_channel > _ALIKE * own_token:
        sentence = _(
            "With a scale per token, a channel made {most:g} times larger sets the scale for all: "
            "the others come back from {whole} with an error of {token:.0%}; with a scale by "
            "channel it stays at {by_channel:.1%}. This model\u2019s own largest channel is only "
            "{own:.1f} times its head\u2019s median one, and both ways do alike ({own_token:.1%} "
            "and {own_channel:.1%}): what {channel} gains above, it owes to its newest keys, which "
            "are floats."
        )
    else:
        sentence = _(
            "With a scale per token, a channel made {most:g} times larger sets the scale for all: "
            "the others come back from {whole} with an error of {token:.0%}; with a scale by "
            "channel it stays at {by_channel:.1%}. This model\u2019s own largest channel is "
            "{own:.1f} times its head\u2019s median one, and costs {own_token:.1%} against "
            "{own_channel:.1%} already."
        )
    return sentence.format(
        most=most,
        whole=whole,
        channel=channel,
        token=found[whole, most].others_error,
        by_channel=found[channel, most].others_error,
        own=found[whole, 1].times_median,
        own_token=own_token,
        own_channel=own_channel,
    )
