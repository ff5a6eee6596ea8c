"""Will it win: speed-up by k said beforehand and measured, and a planner for other models."""

import pandas as pd
import streamlit as st

from tinyllm.experiments import planner, published
from tinyllm.experiments.forecast import PAIRS, REPEATS, ForecastSettings, watch
from tinyllm.experiments.forecast_record import ForecastRecord, ForecastRow
from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.prompts import validation_prompts
from tinyllm.experiments.rows import flat
from tinyllm.speculative import Costs, named, theory
from tinyllm.speculative.auto import AutoK
from tinyllm.speculative.profile import Profile
from tinyllm.ui import controls, forecast, layout, loaded, state
from tinyllm.ui import planner as plans
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _
from tinyllm.ui.widgets import Widgets, menu, run_widgets

ensure_entry()
PAGE = "forecast"
HEIGHT = 330


def pair() -> str:
    """A target and what drafts for it, of those that are here."""
    text = _("A target and its drafter: a trained model, or prompt lookup (ngram).")
    return str(menu("pair", _("Target and drafter"), text, ForecastSettings))


def page_widgets(model: ModelChoice) -> Widgets:
    """The page's controls by field."""
    return {**run_widgets(model), "pair": pair}


def begin(config: ForecastSettings) -> state.Play[ForecastRecord]:
    """A forecast to watch: prompt by prompt its costs, the profile, and every k measured."""
    target, drafter = PAIRS[config.pair]
    events = watch(config.run, loaded.model(target), named(drafter, loaded.model))
    return state.Play(config, events, ForecastRecord())


def rows_of(record: ForecastRecord) -> list[ForecastRow]:
    """The record's rows, with the names of this page's pair."""
    return record.rows(*PAIRS[play.config.pair], play.config.temperature)


def show() -> None:
    """Everything that moves: chart, tiles, what to notice."""
    rows = rows_of(state.step(PAGE, play))
    chart, tiles = st.columns([4, 1])
    with chart:
        plot(forecast.figure(rows), "forecast_chart", alt=forecast.alt(rows), height=HEIGHT)
    with tiles:
        for name, value in forecast.tiles(rows).items():
            st.metric(name, value)
    layout.notice(forecast.finding(rows))


layout.heading(_("Measure the calls, and you know beforehand what drafting will win"))
play = controls.control_row(
    PAGE,
    ("pair", "temperature", "tokens"),
    ("seed", "top_k", "top_p"),
    begin,
    kind=ForecastSettings,
    widgets=page_widgets,
)
state.ticking(show, play)
layout.timing(play, REPEATS * len(validation_prompts()))
controls.try_this(
    {
        _("Only the likeliest token: temperature 0"): ForecastSettings(temperature=0.0),
        _("Hotter: temperature 1"): ForecastSettings(temperature=1.0),
        _("Longer texts: 192 tokens"): ForecastSettings(tokens=192),
    }
)

st.subheader(_("Plan it for models that are not here"), anchor=False)
plan = plans.choose()
by_k, by_batch = planner.by_k(plan), planner.by_batch(plan)
left, right = st.columns(2)
with left:
    plot(plans.k_figure(by_k, plan.k), "plan_k_chart", alt=plans.k_alt(by_k), height=HEIGHT)
with right:
    figure, words = plans.batch_figure(by_batch, plan), plans.batch_alt(by_batch)
    plot(figure, "plan_batch_chart", alt=words, height=HEIGHT)
st.markdown(plans.finding(plan, by_k, by_batch))
if (basis := plans.basis(plan)) is not None:
    st.caption(basis)
numbers = list(published.rows())
with st.expander(
    _("{agree} of {count} published numbers, computed anew").format(
        agree=sum(row.agrees for row in numbers), count=len(numbers)
    ),
    expanded=False,
):
    st.markdown(
        _(
            "Inputs and results are printed rounded: inputs are varied over what rounds to them, "
            "and agreement means that ours meets what the result may stand for. The llama.cpp "
            "issue measured 1.675: its batch of five was one token short of checking five "
            "proposals."
        )
    )
    st.dataframe(pd.DataFrame(plans.published_table(numbers)), hide_index=True, height=420)

rows = rows_of(play.result)
layout.below(
    reading=_(
        "Rounds of every k are timed inside the loop, in turn with plain tokens. How often the "
        "drafter is right comes from the target's own texts: given that a token came out, it came "
        "by acceptance with probability min(1, q/p), so one pass along a text tells what any k "
        "would do. Of the speculative runs that are measured nothing enters the forecast. It also "
        "counts the prompt's prefill, the shorter last rounds, v and b: the formula leaves them "
        "out."
    ),
    formula=forecast.formula(play.result, rows),
    code=(theory.forecast, Costs.round, Profile.run, AutoK),
    sources=(
        layout.SOURCES[0],
        _("J. Chen and others, *MagicDec*, arXiv 2408.11049: the cost of checking in the formula."),
        _("Z. Sun and others, *Block Verification*, 2024, arXiv 2403.10444."),
        _("S. Williams and others, *Roofline*, Communications of the ACM 52(4), 2009."),
    ),
    export={
        "forecast": [flat(row) for row in rows],
        "plan_by_k": [flat(row) for row in by_k],
        "plan_by_batch": [flat(row) for row in by_batch],
        "published": [flat(row) for row in numbers],
    },
    settings=play.config,
    numbers=forecast.cost_rows(play.result.costs) if play.result.turns else (),
)
