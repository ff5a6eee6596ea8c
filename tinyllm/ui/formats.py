"""The KV dtype page's charts, texts and sentences: data in, figure or words out.

Colours are palette names, as in figures.py. Nothing is typed in: every number comes from the
record.
"""

from collections.abc import Sequence
from html import escape
from math import log10
from typing import Any

from tinyllm.config import ModelConfig
from tinyllm.experiments.kv_dtype import REFERENCE, Extent, per_token
from tinyllm.experiments.kv_dtype_record import FormatRecord, FormatRow, Texts
from tinyllm.ui.figures import MARGIN, heading
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, format_count, format_seconds

# Where a point's name stands, so that names of neighbours do not meet.
_PLACES = {
    "float32": "top center",
    "float16": "top center",
    "bfloat16": "middle right",
    "int8": "bottom left",
    "int8_channel": "bottom right",
    "int4_channel": "middle left",
}
# Series -> the formats in it; each has its own colour and marker.
_KINDS = {
    "floats": ("float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2"),
    "token": ("int8", "int4", "int4_g8"),
    "channel": ("int8_channel", "int4_channel"),
}
_LOOKS = {"floats": ("$0", "circle"), "token": ("$1", "square"), "channel": ("$2", "diamond")}


def quality_figure(record: FormatRecord, chosen: str, shape: ModelConfig) -> Figure:
    """Increase of the loss against bytes per token, a point for each format; one is ringed.

    `shape` is the model's, whose bytes in float32 fix the axis before anything is measured.
    """
    names = {
        "floats": _("floats"),
        "token": _("integers, a scale per token"),
        "channel": _("integers, keys by channel"),
    }
    data = []
    for kind, members in _KINDS.items():
        rows = [record.formats[one] for one in members if one in record.formats]
        data.append(_points(rows, *_LOOKS[kind]) | {"name": names[kind]})
    ring = [record.formats[chosen]] if chosen in record.formats else []
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [row.bytes_per_token for row in ring],
            "y": [row.loss_increase for row in ring],
            "hoverinfo": "skip",
            "showlegend": False,
            "marker": {
                "symbol": "circle-open",
                "size": 22,
                "color": "$text",
                "line": {"width": 2, "color": "$text"},
            },
        }
    )
    top = max((row.loss_increase + row.loss_error for row in record.formats.values()), default=0)
    widest = per_token(shape, REFERENCE)
    layout = {
        "margin": MARGIN,
        "hovermode": "closest",
        "showlegend": True,
        "legend": {"x": 0.99, "y": 0.99, "xanchor": "right", "yanchor": "top"},
        "xaxis": {
            "type": "log",
            "title": {"text": _("bytes per token, the whole context held")},
            "tickvals": [widest / 2**halving for halving in range(4)],
            "ticktext": [f"{widest / 2**halving:,.0f}" for halving in range(4)],
            "autorange": False,
            "range": [log10(widest / 10), log10(widest * 1.35)],
        },
        "yaxis": {"range": [-0.16 * (top or 0.01), 1.2 * (top or 0.01)], "nticks": 6},
        "annotations": [heading(_("Increase of the loss, nats"), 1)],
    }
    return {"data": data, "layout": layout}


def _points(rows: Sequence[FormatRow], colour: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [row.bytes_per_token for row in rows],
        "y": [row.loss_increase for row in rows],
        "text": [f"  {row.dtype}  " for row in rows],
        "textposition": [_PLACES.get(row.dtype, "middle right") for row in rows],
        "textfont": {"color": "$text"},
        "cliponaxis": False,
        "error_y": {
            "type": "data",
            "array": [row.loss_error for row in rows],
            "color": colour,
            "thickness": 1,
            "width": 3,
        },
        "marker": {"color": colour, "symbol": symbol, "size": 11},
        "customdata": [
            [row.identical, row.prompts, row.max_logit_difference, row.dtype] for row in rows
        ],
        "hovertemplate": _(
            "%{customdata[3]}: %{x:,.0f} bytes a token, %{y:+.4f} nats<br>%{customdata[0]} of "
            "%{customdata[1]} texts the same, logits at most %{customdata[2]:.3g} apart"
            "<extra></extra>"
        ),
    }


def texts_html(texts: Texts, chosen: str) -> str:
    """Both continuations, one above the other; from the first difference on they are marked."""
    same = texts.same
    lines = []
    for name, text in ((REFERENCE, texts.reference), (chosen, texts.text)):
        shown, rest = (escape(part.replace("\n", "⏎")) for part in (text[:same], text[same:]))
        tail = f"<mark>{rest}</mark>" if rest else ""
        lines.append(f"<span>{escape(name)}</span><code>{shown}{tail}</code>")
    return f'{_CSS}<div class="tinyllm-texts">{"".join(lines)}</div>'


_CSS = """<style>
.tinyllm-texts { display: grid; grid-template-columns: max-content minmax(0, 1fr);
  gap: 0.1rem 0.8rem; font-size: 0.85rem; }
.tinyllm-texts span { opacity: 0.75; }
.tinyllm-texts code { white-space: pre-wrap; overflow-wrap: anywhere; }
.tinyllm-texts mark { background: none; color: inherit;
  text-decoration: underline dashed; text-underline-offset: 0.25em; }
@media (max-width: 640px) { .tinyllm-texts { grid-template-columns: minmax(0, 1fr); } }
</style>"""


def _words(row: FormatRow, reference: FormatRow) -> dict[str, str]:
    return {
        "dtype": row.dtype,
        "tokens": format_count(row.tokens),
        "nbytes": format_count(row.nbytes),
        "share": f"{row.nbytes / reference.nbytes:.0%}",
        "increase": f"{row.loss_increase:.4f}",
        "loss": f"{reference.loss:.3f}",
        "identical": str(row.identical),
        "prompts": str(row.prompts),
        "step": format_seconds(row.step_seconds.median),
        "reference_step": format_seconds(row.reference_step_seconds.median),
    }


def notice(record: FormatRecord, chosen: str) -> str:
    """What the chosen format saves and costs, as far as it is measured."""
    row, reference = record.formats.get(chosen), record.formats.get(REFERENCE)
    if reference is None or row is None:
        return _("The formats are being measured, float32 first: it is what all are held against.")
    if chosen == REFERENCE:
        return _(
            "float32 is what the other formats are held against: {nbytes} bytes for {tokens} "
            "tokens and a loss of {loss} nats. Choose one with fewer bits."
        ).format(**_words(row, reference))
    if row.loss_increase <= 2 * row.loss_error:
        sentence = _(
            "{dtype} holds {tokens} tokens in {nbytes} bytes, {share} of float32, at no loss that "
            "can be measured; {identical} of {prompts} texts stay the same. A step takes {step} "
            "against {reference_step}: numbers are decoded when they are read."
        )
    else:
        sentence = _(
            "{dtype} holds {tokens} tokens in {nbytes} bytes, {share} of float32, and costs "
            "{increase} nats on a loss of {loss}; {identical} of {prompts} texts stay the same. A "
            "step takes {step} against {reference_step}: numbers are decoded when they are read."
        )
    return sentence.format(**_words(row, reference))


def less_is_measured(extent: Extent) -> str:
    """How little of a large model is looked at."""
    return _(
        "Of a large model less is measured: {prompts} texts of {tokens} tokens, and the loss over "
        "{windows} stretches of {window} tokens, with their standard error."
    ).format(
        prompts=extent.prompts,
        tokens=extent.new_tokens,
        windows=extent.windows,
        window=extent.window,
    )


def progress(record: FormatRecord) -> str:
    """What is being measured now."""
    now = record.progress
    if now is None:
        return _("Measuring in turn ...")
    return _("Measuring {dtype}: {part} of {parts}.").format(
        dtype=now.name, part=now.part + 1, parts=now.parts
    )


def tiles(record: FormatRecord, chosen: str) -> list[tuple[str, str]]:
    """Name and value of the three numbers beside the chart."""
    row = record.formats.get(chosen)
    return [
        (
            _("Bytes per token"),
            "-" if row is None else format_count(row.bytes_per_token),
        ),
        (
            _("Loss against float32"),
            "-" if row is None else _("{nats:+.4f} nats").format(nats=row.loss_increase),
        ),
        (
            _("Texts that stay the same"),
            "-"
            if row is None
            else _("{same} of {all}").format(same=row.identical, all=row.prompts),
        ),
    ]


def quality_chart(record: FormatRecord) -> str:
    """The main chart in words."""
    if not record.formats:
        return _("Bytes per token and increase of the loss, by format: still to be measured.")
    points = ", ".join(
        f"{row.dtype}: {row.bytes_per_token:,.0f}, {row.loss_increase:+.4f}"
        for row in record.formats.values()
    )
    return _("Bytes per token and increase of the loss in nats, by format: {points}.").format(
        points=points
    )
