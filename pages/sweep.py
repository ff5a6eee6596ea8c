"""Sweep: speculative decoding over k and temperature, with what its calls cost."""

import streamlit as st

from tinyllm.experiments import call_cost
from tinyllm.experiments.prompts import validation_prompts
from tinyllm.experiments.rows import flat
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.sweep import REPEATS, SweepRecord, cells, watch
from tinyllm.speculative import theory
from tinyllm.ui import controls, layout, loaded, state, sweep
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _

ensure_entry()
PAGE = "sweep"
HEIGHT = 330


def begin(config: RunConfig) -> state.Play[SweepRecord]:
    """A sweep to watch: the costs of calls, then one more prompt in one cell at a time."""
    events = watch(config, loaded.model(config.target), loaded.model("draft"))
    return state.Play(config, events, SweepRecord())


def show() -> None:
    """Everything that moves: the map, the cost of a call, tiles, what to notice."""
    record = state.step(PAGE, play)
    heat, cost, tiles = st.columns([2.3, 1.7, 1])
    with heat:
        plot(sweep.heat_figure(record), "heat_chart", alt=sweep.heat_alt(record), height=HEIGHT)
    with cost:
        figure = sweep.cost_figure(record.costs)
        plot(figure, "cost_chart", alt=sweep.cost_alt(record.costs), height=HEIGHT)
    with tiles:
        for name, value in sweep.tiles(record).items():
            st.metric(name, value)
    layout.notice(sweep.finding(record))


layout.heading(_("Drafting wins where proposals are accepted and checking them is cheap"))
play = controls.control_row(
    PAGE, ("kv_heads", "kv_dtype", "tokens"), ("seed", "top_k", "top_p"), begin
)
config, record = play.config, play.result
state.ticking(show, play)
layout.timing(play, REPEATS * len(validation_prompts()))
controls.try_this(
    {
        _("Longer texts: 192 tokens"): RunConfig(tokens=192),
        _("A cheaper target: 1 KV head"): RunConfig(kv_heads=1),
        _("Fewer choices: top-k 3"): RunConfig(top_k=3),
    }
)
layout.below(
    reading=_(
        "Eight prompts from source code that no model has seen are decoded in every cell, three "
        "times, each in turn with plain decoding of the same prompt. Theory takes the acceptance "
        "rate α as constant. With T(k+1) = T(1) it is Theorem 3.8; with the measured cost of a "
        "call it says what this machine can gain at most. What is left is the loop's own work."
    ),
    formula=sweep.formula(record),
    code=(cells, call_cost.rows, theory.improvement, theory.forecast),
    sources=layout.SOURCES[:2],
    export={
        "sweep": [flat(row) for row in record.rows.values()],
        "call_cost": [flat(row) for row in record.costs],
    },
    settings=config,
)
