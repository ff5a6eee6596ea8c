"""Guide: from a symptom to a technique, its cost and its flag; and common questions, measured."""

import streamlit as st

from tinyllm.experiments import answers
from tinyllm.experiments.guide import SOURCES, advice
from tinyllm.experiments.head_quality import variants
from tinyllm.experiments.settings import RunConfig
from tinyllm.ui import address, controls, guide, layout, loaded, state
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.text import _

ensure_entry()
PAGE = "guide"


def begin(config: RunConfig) -> state.Play[guide.Answers]:
    """The questions, answered one by one."""
    known = variants()
    models = [loaded.model(one.name) for one in known]
    asked = answers.Asked(loaded.model("target"), loaded.model("draft"), known, models)
    return state.Play(config, answers.rows(asked), guide.Answers())


def show() -> None:
    """The answers as they come."""
    guide.answer_list(state.step(PAGE, play).given)


layout.heading(_("Say where it hurts: what helps, what it costs, which flag turns it on"))
wrong = guide.wrong_parameters()
messages = st.container()
ticked = guide.symptoms()
found = advice(symptom for symptom, is_ticked in ticked.items() if is_ticked)
choice, run = st.columns([3, 1], vertical_alignment="bottom")
with choice:
    engine = guide.engine()
with run:
    play = controls.control_row(PAGE, (), (), begin)
with messages:
    address.warn(f"{PAGE}_choices", wrong, ticked | {"engine": engine})
layout.notice(guide.notice(found))
guide.techniques(found, engine)
st.subheader(_("Common questions, answered with numbers from this machine"), anchor=False)
state.ticking(show, play)
layout.timing(play, 1)
layout.below(
    reading=_(
        "Techniques are sorted by how many of the ticked symptoms they help with. What each gives "
        "is shown, measured, on its own page; the flags are those of the engines' documentation, "
        "and an engine's --help has the last word. Most are combined: a server has a cache and "
        "blocks to begin with, and 8-bit caches and speculation are chosen on top."
    ),
    formula=(),
    code=(advice, answers.rows),
    sources=tuple(_(source) for source in SOURCES.values()),
    export={"answers": [answer.row() for answer in play.result.given]},
    settings=play.config,
)
