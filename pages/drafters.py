"""Drafters: everything that can propose for one target, on one prompt, side by side."""

import streamlit as st

from tinyllm.experiments.drafters import (
    REPEATS,
    DraftersConfig,
    DraftersRecord,
    entrants,
    watch,
)
from tinyllm.speculative import EarlyExitDrafter, FallbackDrafter, HeadsDrafter, NGramDrafter
from tinyllm.speculative.drafters import SURE
from tinyllm.speculative.tree import chosen, siblings
from tinyllm.ui import controls, drafters, layout, loaded, state
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _

ensure_entry()
PAGE = "drafters"


def begin(config: DraftersConfig) -> state.Play[DraftersRecord]:
    """Plain decoding and every drafter, a run of each at a time."""
    events = watch(config, loaded.model(config.target), entrants(config.target, loaded.model))
    return state.Play(config, events, DraftersRecord(config.temperature))


def show() -> None:
    """Everything that moves: the bars, tiles, what to notice, the table."""
    record = state.step(PAGE, play)
    rows = record.rows
    chart, tiles = st.columns([4, 1])
    with chart:
        plot(drafters.figure(rows), "drafters_chart", alt=drafters.alt(rows), height=250)
    with tiles:
        for name, value in drafters.tiles(record).items():
            st.metric(name, value)
    layout.notice(drafters.finding(record))
    drafters.table(rows)


layout.heading(_("What proposes is free to choose: any drafter, the same output law"))
play = controls.control_row(
    PAGE,
    drafters.MAIN,
    drafters.MORE,
    begin,
    kind=DraftersConfig,
    widgets=drafters.page_widgets,
)
config: DraftersConfig = play.config
state.ticking(show, play)
layout.timing(play, REPEATS)
controls.try_this(
    {
        _("Something to copy: one method over and over"): drafters.COPYING,
        _("Only the likeliest token: temperature 0"): DraftersConfig(temperature=0.0),
        _("Two proposals, four candidates each"): DraftersConfig(k=2, width=4),
    }
)
layout.below(
    reading=_(
        "A drafter may be anything that proposes tokens and says with which probability. A small "
        "model has weights and a cache of its own. Prompt lookup copies what followed the same "
        "characters earlier and is certain of it: what it proposes is kept where p draws just "
        "that, so that the same seed makes plain decoding's text at any temperature. Before a "
        "draft model it speaks only where at "
        "least {sure} characters are the same. Early exit reads the target's own first layers "
        "with its last norm and head, and needs no byte more: what those layers leave in the "
        "cache is what checking would put there. Trained heads read the state behind the target's "
        "last layer. In a tree further candidates, drawn from the same q without putting back, at "
        "temperature 0 the next likeliest, "
        "stand beside every proposal; the target checks all in one call, each with its own "
        "ancestors, and where a proposal is refused its neighbours are tried on what is left of "
        "p. c is clocked inside the runs: the time spent drafting, for each proposal, in steps of "
        "plain decoding."
    ).format(sure=SURE.shortest),
    formula=drafters.formula(play.result, config.k),
    code=(NGramDrafter, FallbackDrafter, EarlyExitDrafter, HeadsDrafter, chosen, siblings),
    sources=(
        *layout.SOURCES[:2],
        _("A. Saxena, *Prompt Lookup Decoding*, 2023: copying n-grams as a drafter."),
        _(
            "M. Elhoushi and others, *LayerSkip*, ACL 2024, arXiv 2404.16710: the first layers "
            "draft, the rest check. There the model is trained for it; here it is not."
        ),
        _(
            "T. Cai and others, *Medusa*, ICML 2024, arXiv 2401.10774, and Z. Ankner and others, "
            "*Hydra*, 2024, arXiv 2402.05109: heads on the last state, each seeing the one before."
        ),
        _(
            "X. Miao and others, *SpecInfer*, ASPLOS 2024, arXiv 2305.09781, and W. Jeon and "
            "others, *Recursive Speculative Decoding*, 2024, arXiv 2402.14160: trees of proposals, "
            "and drawing them without putting back."
        ),
    ),
    export={"drafters": [row.row() for row in play.result.rows]},
    settings=config,
)
