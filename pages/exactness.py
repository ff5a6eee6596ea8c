"""Exactness: what becomes of a proposal, and 200,000 draws that follow the target's law."""

import streamlit as st

from tinyllm.experiments.exactness import (
    CHECKPOINTS,
    DrawsRecord,
    chosen_laws,
    draws,
    prefixes_for,
    speculative_draws,
)
from tinyllm.experiments.rows import flat
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.statistics import expected_total_variation
from tinyllm.speculative import acceptance
from tinyllm.ui import controls, exactness, layout, loaded, state
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _, format_count

ensure_entry()
PAGE = "exactness"
HEIGHT = 330


def begin(config: RunConfig) -> state.Play[DrawsRecord]:
    """Draws to watch, a checkpoint at a time."""
    laws = chosen_laws(config, loaded.model(config.target), loaded.drafter(config))
    events = draws(laws, config.temperature, config.seed)
    return state.Play(config, events, DrawsRecord(laws))


def show() -> None:
    """Everything that moves: areas, convergence, tiles, what to notice."""
    record = state.step(PAGE, play)
    row = record.rows[-1]
    areas, convergence, tiles = st.columns([2.1, 1.9, 1])
    with areas:
        figure = exactness.areas_figure(record.laws)
        plot(figure, "areas_chart", alt=exactness.areas_alt(record.laws), height=HEIGHT)
    with convergence:
        figure = exactness.convergence_figure(record.rows)
        plot(figure, "convergence_chart", alt=exactness.convergence_alt(row), height=HEIGHT)
    with tiles:
        st.metric(_("Draws"), format_count(row.draws))
        st.metric(_("Accepted"), f"{row.accepted:.2%}", help=_("Of the proposals drawn from q."))
        st.metric(_("Σ min(p, q)"), f"{row.sum_min:.2%}", help=_("What that should come to."))
        st.metric(
            _("χ² p-value"),
            "-" if row.p_value is None else f"{row.p_value:.3f}",
            help=_("How often a sample of p itself strays at least as far as this one."),
        )
    layout.notice(exactness.finding(record))


layout.heading(_("A drafter changes the speed, never the law of the output"))
play = controls.control_row(
    PAGE,
    ("model", "prompt", "temperature"),
    ("drafter", "kv_heads", "seed", "top_k", "top_p"),
    begin,
    prompt_of=lambda model: prefixes_for(model)[1],
    tokens=8,
)
config, record = play.config, play.result
state.ticking(show, play)
layout.drawn(play, CHECKPOINTS[-1])
controls.try_this(
    {
        prefix.strip().splitlines()[0]: RunConfig(prompt=prefix)
        for prefix in prefixes_for(config.chosen_model)
    }
    | {_("Only three tokens: top-k 3"): RunConfig(top_k=3)}
)
layout.below(
    reading=_(
        "A proposal x comes from q and is accepted with probability min(1, p(x)/q(x)); a refused "
        "place is drawn from max(0, p - q), normalised. The solid part of a bar is accepted; what "
        "is refused where q is too large has the same area as what is drawn where p is larger, "
        "so together they make p. No sample is exactly p: the band shows how far samples of p "
        "itself stray, by simulation, and the last line their mean distance, exactly."
    ),
    formula=exactness.formula(record.laws, record.rows[-1]),
    code=(
        acceptance.acceptance_probability,
        acceptance.residual,
        speculative_draws,
        expected_total_variation,
    ),
    sources=layout.SOURCES[:2],
    export={"draws": [flat(row) for row in record.rows]},
    settings=config,
)
