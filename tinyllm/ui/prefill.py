"""What the Prefill page draws and says: its controls, two charts of times, and the sentences."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.prefill import PrefillConfig, PrefillRow
from tinyllm.experiments.prefix import PrefillRecord, PrefixRow
from tinyllm.ui import widgets
from tinyllm.ui.figures import BETWEEN, FAST, MARGIN, SLOW, heading, times
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, format_bytes, format_seconds

MAIN, MORE = ("model", "prefix", "own", "kv_dtype"), ("kv_heads",)


def page_widgets(model: ModelChoice) -> widgets.Widgets:
    """The page's controls by field."""
    slider = partial(widgets.slider, kind=PrefillConfig, model=model)
    return {
        "prefix": lambda: slider(
            "prefix",
            _("Known prefix, tokens"),
            16,
            _("What was computed before: a system prompt or a long document, say."),
        ),
        "own": lambda: slider(
            "own", _("Own tokens"), 1, _("What a request has behind the prefix.")
        ),
        "kv_dtype": partial(widgets.kv_dtype, PrefillConfig),
        "kv_heads": partial(widgets.kv_heads, model, PrefillConfig),
    }


def _layout(title: str, below: str, last: int, slowest: float) -> dict[str, Any]:
    return {
        "margin": MARGIN,
        "hovermode": "closest",
        "showlegend": True,
        "legend": {"x": 0.01, "y": 0.98, "yanchor": "top", "bgcolor": "$background/0.6"},
        "xaxis": {"range": [-last * 0.02, last * 1.04], "title": {"text": below}},
        "yaxis": {"range": [0, slowest * 1.12], "ticksuffix": " ms"},
        "annotations": [heading(title, 1)],
    }


def prefill_figure(rows: Sequence[PrefillRow]) -> Figure:
    """Time to fill an empty cache with so many tokens, both ways."""
    x, hover = [row.tokens for row in rows], _("%{x} tokens: %{y:.2f} ms")
    slow = [row.one_by_one_seconds for row in rows]
    fast = [row.at_once_seconds for row in rows]
    data = [
        times(_("one by one"), x, slow, hover, **SLOW),
        times(_("in one call"), x, fast, hover, **FAST),
    ]
    most = max((one.high for one in [*slow, *fast]), default=1e-3) * 1000
    title = _("Tokens into an empty cache")
    return {"data": data, "layout": _layout(title, _("tokens"), max(x, default=256), most)}


def prefix_figure(rows: Sequence[PrefixRow], own: int) -> Figure:
    """Time to the first logits of a request, by the length of the prefix, all three ways."""
    x, hover = [row.prefix for row in rows], _("%{x} tokens: %{y:.2f} ms")
    recompute = [row.recompute_seconds for row in rows]
    copy = [row.copy_seconds for row in rows]
    blocks = [row.blocks_seconds for row in rows]
    data = [
        times(_("recomputed"), x, recompute, hover, **SLOW),
        times(_("copied"), x, copy, hover, **BETWEEN),
        times(_("blocks shared"), x, blocks, hover, **FAST),
    ]
    most = max((one.high for one in [*recompute, *copy, *blocks]), default=1e-3) * 1000
    title = _("{own} tokens behind a known prefix").format(own=own)
    below = _("length of the prefix, tokens")
    return {"data": data, "layout": _layout(title, below, max([384, *x]), most)}


_COMPUTED = (
    r"\text{computed} = P + N \quad\text{or, behind } \lfloor P/B \rfloor B"
    r"\text{ shared tokens,}\quad N + P \bmod B",
)


def tiles(record: PrefillRecord) -> list[tuple[str, str]]:
    """Name and value of the three numbers beside the charts."""
    reuse, fill = record.reuse, record.fill
    times = _("{times:.1f} ×")
    return [
        (_("One by one takes"), "-" if fill is None else times.format(times=fill.ratio)),
        (
            _("Request recomputed"),
            "-" if reuse is None else format_seconds(reuse.recompute_seconds.median),
        ),
        (
            _("With shared blocks"),
            "-" if reuse is None else format_seconds(reuse.blocks_seconds.median),
        ),
    ]


def _words(reuse: PrefixRow, fill: PrefillRow | None) -> dict[str, object]:
    return {
        "prefix": reuse.prefix,
        "own": reuse.own,
        "found": reuse.found,
        "recompute": format_seconds(reuse.recompute_seconds.median),
        "copy": format_seconds(reuse.copy_seconds.median),
        "blocks": format_seconds(reuse.blocks_seconds.median),
        "times": reuse.recompute_seconds.median / reuse.blocks_seconds.median,
        "difference": f"{max(reuse.copy_difference, reuse.blocks_difference):.1e}",
        "copied": format_bytes(reuse.copied_bytes),
        "new": format_bytes(reuse.new_block_bytes),
        "tokens": fill.tokens if fill else 0,
        "ratio": fill.ratio if fill else 0.0,
        "once": format_seconds(fill.at_once_seconds.median) if fill else "-",
        "single": format_seconds(fill.one_by_one_seconds.median) if fill else "-",
    }


def finding(record: PrefillRecord) -> str:
    """What to notice, of the part that is measured already."""
    reuse, fill = record.reuse, record.fill
    if reuse is None or fill is None:
        return reused(record)
    if reuse.copy_difference == reuse.blocks_difference == 0:
        sentence = _(
            "{tokens} tokens one by one take {ratio:.1f} times as long as in one call, which reads "
            "every weight once for all of them. Behind a known prefix of {prefix} tokens a request "
            "takes {blocks} with shared blocks, {copy} with a copy of {copied}, and {recompute} "
            "recomputed. Its logits are those of recomputing, bit for bit."
        )
    else:
        sentence = _(
            "{tokens} tokens one by one take {ratio:.1f} times as long as in one call, which reads "
            "every weight once for all of them. Behind a known prefix of {prefix} tokens a request "
            "takes {blocks} with shared blocks, {copy} with a copy of {copied}, and {recompute} "
            "recomputed. The logits differ by at most {difference}."
        )
    return sentence.format(**_words(reuse, fill))


def reused(record: PrefillRecord) -> str:
    """The reuse of the chosen prefix in words; also what its chart shows."""
    if record.reuse is None:
        return _("A request behind a prefix of {prefix} tokens is being timed, three ways.").format(
            prefix=record.chosen
        )
    return _(
        "Behind a known prefix of {prefix} tokens a request of {own} tokens takes {blocks} with "
        "shared blocks, {copy} with a copy, and {recompute} recomputed."
    ).format(**_words(record.reuse, record.fill))


def filled(record: PrefillRecord) -> str:
    """The chart of filling the cache in words."""
    fill = record.fill
    if fill is None:
        return _("Time to put tokens into an empty cache: still to be measured.")
    return _(
        "Time to put tokens into an empty cache: {tokens} tokens take {once} in one call and "
        "{single} one by one."
    ).format(
        tokens=fill.tokens,
        once=format_seconds(fill.at_once_seconds.median),
        single=format_seconds(fill.one_by_one_seconds.median),
    )


def formula(record: PrefillRecord) -> tuple[str, ...]:
    """The tokens that a request computes, and the bytes it takes, both ways, with numbers."""
    reuse = record.reuse
    if reuse is None:
        return _COMPUTED
    total = reuse.prefix + reuse.own
    left = reuse.prefix - reuse.found
    return (
        *_COMPUTED,
        rf"{reuse.prefix} + {reuse.own} = {total} \quad\text{{or}}\quad "
        rf"{reuse.own} + {left} = {reuse.own + left}",
        rf"\text{{copied: }} {reuse.copied_bytes:,}\text{{ bytes}} \quad"
        rf"\text{{new blocks: }} {reuse.new_block_bytes:,}\text{{ bytes}}",
    )
