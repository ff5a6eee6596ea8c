"""What the Paging page draws and says: its controls, the chart of waste, and the sentences."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.paging import LONGEST, PagingConfig, WasteRow
from tinyllm.experiments.paging_record import PagingRecord, counts
from tinyllm.experiments.serving import ROOM
from tinyllm.ui import widgets
from tinyllm.ui.figures import MARGIN, heading, line
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, format_count

MAIN = ("block_size", "lengths", "shared")
MORE = ("shortest", "longest", "same", "median", "p95", "pasted", "seed")


def _pasted() -> Any:
    # Kept for the session and out of the address, which a long list would not fit.
    return st.text_area(
        _("Yours: CSV of lengths"),
        PagingConfig.default("pasted"),
        key="pasted",
        height=110,
        help=_("A line for each request: its tokens, or those of its prompt and of its answer."),
        persist_state="session",
    )


def page_widgets(_model: ModelChoice) -> widgets.Widgets:
    """The page's controls by field; no model is behind them."""
    number = partial(widgets.number, kind=PagingConfig)
    slider = partial(widgets.slider, kind=PagingConfig)
    return {
        "block_size": lambda: slider(
            "block_size", _("Block size, tokens"), 1, _("Tokens that are reserved at a time.")
        ),
        "lengths": lambda: widgets.choice(
            "lengths",
            _("Lengths of the requests"),
            _("How many tokens a request has at its end. Their numbers stand under More."),
            PagingConfig,
        ),
        "shared": lambda: slider(
            "shared",
            _("Shared prompt, tokens"),
            16,
            _("What the prompts of a kind begin with, a system prompt for example."),
        ),
        "shortest": lambda: number("shortest", _("Uniform: shortest"), _("Tokens.")),
        "longest": lambda: number("longest", _("Uniform: longest"), _("Tokens.")),
        "same": lambda: number("same", _("Fixed: every request"), _("Tokens.")),
        "median": lambda: number("median", _("Log-normal: median"), _("Half are shorter.")),
        "p95": lambda: number("p95", _("Log-normal: 95th percentile"), _("One in 20 is longer.")),
        "pasted": _pasted,
        "seed": lambda: number("seed", _("Seed"), _("Same seed, same requests.")),
    }


def waste_figure(rows: Sequence[WasteRow], block_size: int) -> Figure:
    """Share of the reserved memory that stands empty, against block size, beside slabs."""
    slab, blocks = rows[0], rows[1:]
    sizes = [row.block_size for row in blocks]
    chosen = blocks[block_size - 1]
    top = max(slab.waste, blocks[-1].waste, 0.01) * 100
    data = [
        line(
            [sizes[0], sizes[-1]],
            [slab.waste * 100] * 2,
            _("slabs: %{y:.1f}% empty"),
            color="$1",
            dash="dash",
        ),
        line(
            sizes,
            [row.waste * 100 for row in blocks],
            _("blocks of %{x}: %{y:.2f}% empty"),
            color="$0",
        ),
        {
            "type": "scatter",
            "mode": "markers",
            "showlegend": False,
            "x": [block_size],
            "y": [chosen.waste * 100],
            "marker": {"color": "$0", "size": 12, "symbol": "diamond"},
            "hovertemplate": _("blocks of %{x}: %{y:.2f}% empty<extra></extra>"),
        },
    ]
    slab_label = _("a slab of {tokens} for each request: {waste:.1f}%").format(
        tokens=format_count(slab.block_size), waste=slab.waste * 100
    )
    block_label = _("blocks of {size}: {waste:.2f}%").format(
        size=block_size, waste=chosen.waste * 100
    )
    layout = {
        "margin": MARGIN,
        "hovermode": "closest",
        "xaxis": {"range": [0, sizes[-1] + 1], "title": {"text": _("block size, tokens")}},
        "yaxis": {"range": [0, top * 1.18], "ticksuffix": "%", "nticks": 5},
        "annotations": [
            heading(_("Reserved memory that stands empty"), 1),
            _label(sizes[-1], slab.waste * 100, slab_label, "$1", "right", "bottom"),
            _label(
                block_size,
                chosen.waste * 100,
                block_label,
                "$0",
                "left" if block_size < 64 else "right",
                "bottom",
            ),
        ],
    }
    return {"data": data, "layout": layout}


def _label(x: float, y: float, text: str, colour: str, side: str, above: str) -> dict[str, Any]:
    place = {"x": x, "y": y, "xanchor": side, "yanchor": above, "showarrow": False}
    font = {"color": colour}
    return place | {"text": text, "font": font, "yshift": 7, "bgcolor": "$background/0.7"}


def _words(record: PagingRecord, config: PagingConfig) -> dict[str, object]:
    slab, chosen, last = record.rows[0], record.row(config.block_size), record.last
    step = counts(last) if last else {}
    prompts = last.prompt_tokens if last else 0
    return step | {
        "requests": format_count(slab.requests),
        "slab": f"{slab.waste:.1%}",
        "size": config.block_size,
        "waste": f"{chosen.waste:.2%}",
        "longest": format_count(LONGEST),
        "room": format_count(ROOM),
        "slabs": ROOM // LONGEST,
        "most": record.most_running,
        "found": f"{last.reused_tokens / prompts:.0%}" if last and prompts else "0%",
        "blocks": ROOM // config.block_size,
    }


def finding(record: PagingRecord, config: PagingConfig) -> str:
    """What to notice, with the numbers of both parts."""
    return _(
        "Of {requests} requests, slabs of {longest} tokens leave {slab} of the memory empty, "
        "blocks of {size} leave {waste}. A pool of {room} tokens holds {slabs} slabs, but served "
        "up to {most} sequences at once in blocks; {found} of the prompt tokens were there already."
    ).format(**_words(record, config))


def waste_chart(record: PagingRecord, config: PagingConfig) -> str:
    """The chart of waste in words."""
    return _(
        "Share of the reserved memory that stands empty: {slab} with slabs of {longest} tokens, "
        "{waste} with blocks of {size}."
    ).format(**_words(record, config))


def map_in_words(record: PagingRecord, config: PagingConfig) -> str:
    """The block map in words."""
    return _(
        "Map of {blocks} blocks at step {step}: {blocks_used} used by {running} sequences, "
        "{blocks_shared} of them shared, {blocks_cached} free with a known prefix, "
        "{blocks_blank} blank; {waiting} requests wait."
    ).format(**_words(record, config))


def status(record: PagingRecord, config: PagingConfig) -> str:
    """The line below the map."""
    return _("step {step}: {running} sequences run, {waiting} requests wait").format(
        **_words(record, config)
    )


def formula(record: PagingRecord, config: PagingConfig) -> tuple[str, ...]:
    """The waste of blocks and of slabs, with numbers."""
    lines = [
        r"\text{empty} = 1 - \frac{\sum_i n_i}{\sum_i \lceil n_i / B \rceil \, B}",
    ]
    for row in (record.row(config.block_size), record.rows[0]):
        fraction = rf"\frac{{{row.tokens:,}}}{{{row.reserved:,}}}"
        lines.append(rf"B = {row.block_size:,}:\quad 1 - {fraction} = {row.waste:.4f}")
    return tuple(lines)
