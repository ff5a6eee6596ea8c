"""The KV-heads page: its two charts, its tiles, and its sentences with the run's own numbers."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from tinyllm.experiments.attention_step import AT_MOST, AttentionRow
from tinyllm.experiments.head_quality import SCRATCH, UPTRAINED, QualityRow, best_of_fewest
from tinyllm.experiments.kv_heads import HeadsRecord
from tinyllm.ui.figures import MARGIN, heading, quartiles
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, format_bytes, format_seconds


def attention_figure(rows: Sequence[AttentionRow]) -> Figure:
    """Time of a step for every number of KV heads, beside time in proportion to bytes."""
    names = [str(row.kv_heads) for row in rows]
    labels = [
        f"{_heads(row.kv_heads)}<br>{format_bytes(row.cache_bytes)}"
        f"<br><b>{format_seconds(row.step_seconds.median)}</b>"
        for row in rows
    ]
    whole = 1000 * rows[0].step_seconds.median if rows else 1.0  # ms
    largest = rows[0].cache_bytes if rows else 1
    measured = {
        "type": "bar",
        "name": _("measured: median and quartiles"),
        "x": names,
        "y": [1000 * row.step_seconds.median for row in rows],
        "width": 0.6,
        "marker": {"color": "$0/0.55", "line": {"color": "$0", "width": 1.5}},
        "error_y": quartiles([row.step_seconds for row in rows], "$text", 1000),
        "customdata": [row.share.median for row in rows],
        "hovertemplate": _(
            "KV heads: %{x}<br>%{y:.2f} ms, %{customdata:.2f} of the time of all heads"
            "<extra></extra>"
        ),
    }
    proportion = {
        "type": "scatter",
        "mode": "markers",
        "name": _("in proportion to the bytes"),
        "x": names,
        "y": [whole * row.cache_bytes / largest for row in rows],
        "marker": {"symbol": "line-ew", "size": 34, "line": {"color": "$text", "width": 2.5}},
        "hovertemplate": _("%{y:.2f} ms would be in proportion to the bytes<extra></extra>"),
    }
    bound = {
        "type": "scatter",
        "mode": "lines",
        "name": _("{share:.2f} of the time of all heads").format(share=AT_MOST),
        "x": names,
        "y": [AT_MOST * whole for _row in rows],
        "line": {"color": "$1", "dash": "dot", "width": 2},
        "hoverinfo": "skip",
    }
    highest = max((1000 * row.step_seconds.high for row in rows), default=1.0)
    tallest = max((1000 * row.step_seconds.median for row in rows), default=1.0)
    top = min(highest, 2 * tallest)  # a disturbed quartile does not shrink the bars
    layout = {
        "margin": MARGIN,
        "xaxis": {"type": "category", "tickvals": names, "ticktext": labels},
        "yaxis": {"range": [0, top * 1.3], "ticksuffix": " ms"},
        "legend": {"x": 0.98, "y": 0.99, "xanchor": "right", "yanchor": "top"},
        "annotations": [heading(_("One attention step, by KV heads"), 1)],
    }
    return {"data": [measured, proportion, bound], "layout": layout}


def _heads(count: int) -> str:
    return _("1 head") if count == 1 else _("{count} heads").format(count=count)


def _heads_and_step(row: QualityRow) -> str:
    """A point's label: its KV heads over the time of a whole step."""
    return f"{_heads(row.kv_heads)}<br>{format_seconds(row.step_seconds.median)}"


def quality_figure(rows: Sequence[QualityRow]) -> Figure:
    """Loss on unseen text against the cache bytes of a token, for both ways of training."""
    data = [
        _trained(rows, SCRATCH, _("trained from scratch"), "$0", "circle", "solid"),
        _trained(rows, UPTRAINED, _("uptrained from pooled heads"), "$1", "diamond", "dash"),
    ]
    sizes = sorted({row.bytes_per_token for row in rows})
    layout = {
        "margin": MARGIN,
        "xaxis": {
            "title": {"text": _("cache bytes a token (float32)")},
            "range": [0, max(sizes, default=1) * 1.25],
            "tickvals": sizes,
        },
        "yaxis": {"tickformat": ".3f", "nticks": 6, "range": _loss_range(rows)},
        "legend": {"x": 0.98, "y": 0.98, "xanchor": "right", "yanchor": "top"},
        "annotations": [heading(_("Loss on unseen text, nats; time of a step"), 1)],
    }
    return {"data": data, "layout": layout}


def _loss_range(rows: Sequence[QualityRow]) -> list[float]:
    """From below the least loss to above the largest, with room for the legend."""
    low = min((row.loss - row.above_error for row in rows), default=0.0)
    high = max((row.loss + row.above_error for row in rows), default=1.0)
    span = max(high - low, 1e-3)
    return [low - 0.1 * span, high + 0.3 * span]


def _trained(
    rows: Sequence[QualityRow], training: str, name: str, colour: str, symbol: str, dash: str
) -> dict[str, Any]:
    """The models of one way of training; uptraining starts at the model with the most heads."""
    first = list(rows[:1]) if training != SCRATCH else []
    shown = [*first, *(row for row in rows if row.training == training)]
    return {
        "type": "scatter",
        "mode": "lines+markers+text",
        "name": name,
        "x": [row.bytes_per_token for row in shown],
        "y": [row.loss for row in shown],
        "text": ["" if row in first else _heads_and_step(row) for row in shown],
        "textposition": "top right" if training == SCRATCH else "bottom left",
        "cliponaxis": False,
        "error_y": {
            "type": "data",
            "array": [row.above_error for row in shown],
            "thickness": 1,
            "width": 3,
        },
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {
            "color": colour,
            "size": [0 if row in first else 11 for row in shown],
            "symbol": symbol,
        },
        "customdata": [
            [row.model, row.above, row.above_error, row.card_loss, 1000 * row.step_seconds.median]
            for row in shown
        ],
        "hovertemplate": _(
            "%{customdata[0]}: %{y:.3f} nats, %{customdata[1]:+.3f} ± %{customdata[2]:.3f} "
            "against all heads<br>%{customdata[3]:.3f} on all unseen files<br>"
            "a whole step: %{customdata[4]:.3f} ms<extra></extra>"
        ),
    }


def _words(record: HeadsRecord) -> dict[str, object]:
    most, fewest = record.attention[0], record.attention[-1]
    best = best_of_fewest(record.quality)
    first = record.quality[0]
    return {
        "bytes": most.cache_bytes / fewest.cache_bytes,
        "share": fewest.share.median,
        "most": most.kv_heads,
        "heads": first.kv_heads,
        "saved": first.bytes_per_token / best.bytes_per_token,
        "above": best.above,
        "error": best.above_error,
        "windows": best.windows,
        "cache": format_bytes(most.cache_bytes),
        "least": format_bytes(fewest.cache_bytes),
        "slow": format_seconds(most.step_seconds.median),
        "fast": format_seconds(fewest.step_seconds.median),
        "loss": first.loss,
        "loss_best": best.loss,
    }


def tiles(record: HeadsRecord) -> None:
    """Time, bytes and loss of one KV head against the most."""
    most, fewest = record.attention[0], record.attention[-1]
    best = best_of_fewest(record.quality)
    quiet: dict[str, Any] = {"delta_color": "off", "delta_arrow": "off"}
    st.metric(
        _("Time, 1 head against {most}").format(most=most.kv_heads),
        _("{share:.2f} ×").format(share=fewest.share.median),
        _("at most {share:.2f} wanted").format(share=AT_MOST),
        **quiet,
    )
    st.metric(
        _("It reads"),
        format_bytes(fewest.cache_bytes),
        _("instead of {bytes}").format(bytes=format_bytes(most.cache_bytes)),
        **quiet,
    )
    st.metric(
        _("Loss with 1 head, at best"),
        f"{best.above:+.3f}",
        _("± {error:.3f} nats a character").format(error=best.above_error),
        **quiet,
    )


def notice(record: HeadsRecord) -> str:
    """What fewer heads save and cost, by the way they were trained when both are there."""
    both = {row.training: row for row in record.quality if row.kv_heads == 1}
    saves = _(
        "With 1 KV head instead of {most} the step reads {bytes:.0f} times fewer bytes and takes "
        "{share:.2f} of the time. One head for {heads} query heads costs {above:+.3f} ± "
        "{error:.3f} nats a character, for a cache {saved:.0f} times smaller."
    )
    compares = _(
        "With 1 KV head instead of {most} the step reads {bytes:.0f} times fewer bytes and takes "
        "{share:.2f} of the time. One head for {heads} query heads costs {uptrained:+.3f} nats a "
        "character uptrained from pooled heads, {scratch:+.3f} trained from scratch."
    )
    words = _words(record)
    if {SCRATCH, UPTRAINED} <= set(both):
        above = {"uptrained": both[UPTRAINED].above, "scratch": both[SCRATCH].above}
        return compares.format(**words, **above)
    return saves.format(**words)


def attention_chart(record: HeadsRecord) -> str:
    """The chart of the attention step in words."""
    return _(
        "Time of one attention step against the bytes it reads: {slow} for {cache} with "
        "{most} KV heads, {fast} for {least} with one."
    ).format(**_words(record))


def quality_chart(record: HeadsRecord) -> str:
    """The chart of the trained models in words."""
    return _(
        "Loss on {windows} windows of unseen text against cache bytes a token: {loss:.3f} nats "
        "with {heads} KV heads, at best {loss_best:.3f} with one."
    ).format(**_words(record))
