"""Prefill: a prompt in one call, and a prefix that was computed before."""

import streamlit as st

from tinyllm.cache import PagedCache
from tinyllm.cache.block_table import BlockTable
from tinyllm.experiments.prefill import PrefillConfig
from tinyllm.experiments.prefix import PrefillRecord, turns_for, watch
from tinyllm.experiments.rows import flat
from tinyllm.model import Transformer
from tinyllm.ui import controls, layout, loaded, prefill, state
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _

ensure_entry()
PAGE = "prefill"
HEIGHT = 390


def begin(config: PrefillConfig) -> state.Play[PrefillRecord]:
    """The measurements to watch, a row at a time."""
    events = watch(config, loaded.model(config.target))
    return state.Play(config, events, PrefillRecord(config.prefix))


def show() -> None:
    """Everything that moves: both charts, tiles, what to notice."""
    record = state.step(PAGE, play)
    left, right, tiles = st.columns([2, 2, 1])
    with left:
        figure = prefill.prefill_figure(record.prefills)
        plot(figure, "prefill_chart", alt=prefill.filled(record), height=HEIGHT)
    with right:
        figure = prefill.prefix_figure(record.prefixes, config.own)
        plot(figure, "prefix_chart", alt=prefill.reused(record), height=HEIGHT)
    with tiles:
        for name, value in prefill.tiles(record):
            st.metric(name, value)
    layout.notice(prefill.finding(record))


layout.heading(_("A prompt is read in one call, and what was read before need not be read again"))
play = controls.control_row(
    PAGE, prefill.MAIN, prefill.MORE, begin, kind=PrefillConfig, widgets=prefill.page_widgets
)
config: PrefillConfig = play.config
state.ticking(show, play)
layout.timing(play, turns_for(loaded.model(config.target)))
controls.try_this(
    {
        _("A long document, a short question"): PrefillConfig(prefix=480, own=16),
        _("Not a whole number of blocks: 100 own tokens"): PrefillConfig(prefix=240, own=100),
        _("A quarter of the bytes: int8"): PrefillConfig(kv_dtype="int8"),
    },
)
layout.below(
    reading=_(
        "A request's prompt of P + N tokens begins with P that were computed before. In blocks "
        "of B tokens whole blocks are shared and the rest, P mod B, is computed again with the N "
        "own tokens. A copy takes the prefix's bytes a second time; shared blocks take none."
    ),
    formula=prefill.formula(play.result),
    code=(Transformer.forward, BlockTable.reuse, PagedCache),
    sources=(
        _(
            "W. Kwon and others, *Efficient Memory Management for Large Language Model Serving "
            "with PagedAttention*, SOSP 2023, arXiv 2309.06180."
        ),
        _("vLLM's documentation: *Automatic Prefix Caching*."),
    ),
    export={
        "prefill": [flat(row) for row in play.result.prefills],
        "prefix": [flat(row) for row in play.result.prefixes],
    },
    settings=config,
)
