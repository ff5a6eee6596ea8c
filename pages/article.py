"""Article: every figure of the article this app grew from, beside ours."""

import streamlit as st

from tinyllm.experiments.article import article, beside
from tinyllm.experiments.report import Report, ReportConfig, comparison_table, measure
from tinyllm.ui import article as drawn
from tinyllm.ui import controls, layout, state
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _

ensure_entry()
PAGE = "article"


def begin(config: ReportConfig) -> state.Play[Report]:
    """Measure what was chosen, row by row."""
    return state.Play(config, measure(config.names), Report())


def show() -> None:
    """Everything that moves: the chart of ratios, tiles, what to notice, the table."""
    report = state.step(PAGE, play)
    found = report.of(config.names)
    chart, tiles = st.columns([4, 1])
    with chart:
        figure = drawn.ratio_figure(found)
        plot(figure, "ratio_chart", alt=drawn.ratio_chart(found), height=330)
    with tiles:
        drawn.tiles(found)
    layout.notice(drawn.finding(found))
    drawn.figure_table(found)


layout.heading(_("Every figure of the article, measured again"))
if state.store(PAGE).get(ReportConfig()) is None:
    state.store(PAGE).put(ReportConfig(), drawn.as_play(drawn.stored()))
play = controls.control_row(
    PAGE, ("experiment",), (), begin, kind=ReportConfig, widgets=drawn.page_widgets
)
config: ReportConfig = play.config
state.ticking(show, play)
drawn.when(play)
drawn.documents(play.result)
layout.below(
    reading=_(
        "A figure of the article is found among our rows by its own numbers (a length, a dtype, "
        "k), and the ratio is ours / the article's. Times are medians with quartiles, measured "
        "in turn with what they are compared with. Bytes, tokens and operations should be the "
        "same on any machine; times, and whatever depends on what the models have learnt, need "
        "not be, and the table says why."
    ),
    formula=(),
    code=(beside, measure),
    sources=(_("{title}. Measured on: {machine}.").format(**drawn.source(article())),),
    export={"comparison": comparison_table(play.result.comparison)},
    settings=config,
)
