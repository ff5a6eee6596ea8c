"""Paging: slabs reserved in advance stand half empty; blocks are taken, shared and given back."""

import streamlit as st

from tinyllm.cache.block_table import BlockTable
from tinyllm.cache.blocks import BlockPool
from tinyllm.experiments.paging import LONGEST, PagingConfig
from tinyllm.experiments.paging_record import PagingRecord, block_map, frame_steps, watch
from tinyllm.experiments.rows import flat
from tinyllm.experiments.serving import ROOM
from tinyllm.ui import controls, layout, paging, state
from tinyllm.ui.block_map import block_map as draw_map
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _

ensure_entry()
PAGE = "paging"


def begin(config: PagingConfig) -> state.Play[PagingRecord]:
    """A stream of requests to watch."""
    record = PagingRecord(frame_steps(config.distribution))
    return state.Play(config, watch(config), record)


def show() -> None:
    """Everything that moves: the block map, the chart below it, tiles, what to notice."""
    record = state.step(PAGE, play)
    drawn, tiles = st.columns([4, 1])
    with drawn:
        if record.last is not None:
            cells = block_map(record.last, config.block_size)
            draw_map(
                cells,
                config.block_size,
                "map",
                status=paging.status(record, config),
                alt=paging.map_in_words(record, config),
            )
        figure = paging.waste_figure(record.rows, config.block_size)
        plot(figure, "waste_chart", alt=paging.waste_chart(record, config), height=205)
    with tiles:
        slab, chosen = record.rows[0], record.row(config.block_size)
        st.metric(_("Empty in slabs"), f"{slab.waste:.1%}")
        st.metric(_("Empty in blocks"), f"{chosen.waste:.2%}")
        running = len(record.last.running) if record.last else 0
        st.metric(_("Sequences at once"), running)
        slabs = _("Slabs of {longest:,}: {count} at once").format(
            longest=LONGEST, count=ROOM // LONGEST
        )
        st.caption(slabs)
    layout.notice(paging.finding(record, config))


layout.heading(_("A slab for every request stands half empty; blocks are taken as they fill"))
play = controls.control_row(
    PAGE, paging.MAIN, paging.MORE, begin, kind=PagingConfig, widgets=paging.page_widgets
)
config: PagingConfig = play.config
state.ticking(show, play)
layout.counted(play)
controls.try_this(
    {
        _("Nothing in common: no shared prompt"): PagingConfig(shared=0),
        _("Large blocks: 128 tokens"): PagingConfig(block_size=128),
        _("Mostly short requests: log-normal"): PagingConfig(lengths="log-normal"),
    },
)
layout.below(
    reading=_(
        "A request of n tokens takes the blocks of B tokens that it needs, the last of which is "
        "partly empty; a slab is as long as the longest request may be. Above, a pool serves a "
        "stream of requests: half of each is its prompt, a fifth ask for a second answer, and "
        "every running sequence makes a token a step. A full block is found again by its tokens "
        "and all before them; a shared block is copied before it is written to; a free one keeps "
        "its tokens until the room is needed, the least recently used first."
    ),
    formula=paging.formula(play.result, config),
    code=(BlockPool, BlockTable),
    sources=(
        _(
            "W. Kwon and others, *Efficient Memory Management for Large Language Model Serving "
            "with PagedAttention*, SOSP 2023, arXiv 2309.06180."
        ),
        _("vLLM's documentation: *Automatic Prefix Caching*, blocks found by a chained hash."),
        _("nano-vllm's block manager: the same in about a hundred lines."),
    ),
    export={"waste": [flat(row) for row in play.result.rows], "steps": play.result.steps},
    settings=config,
)
