"""Pitfalls: known faults of caches and speculation, each done on purpose beside what is right."""

import inspect
from textwrap import dedent

import streamlit as st

from tinyllm.experiments.pitfalls import PITFALLS, PROMPT, Bench, laws, measured
from tinyllm.experiments.pitfalls.loop import Loop
from tinyllm.experiments.rows import flat
from tinyllm.experiments.settings import RunConfig
from tinyllm.ui import address, controls, layout, loaded, pitfalls, state
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _, literal

ensure_entry()
PAGE = "pitfalls"
HEIGHT = 170


def begin(config: RunConfig) -> state.Play[pitfalls.PitfallRecord]:
    """All pitfalls, the one that is looked at first."""
    bench = Bench(
        loaded.model("target"),
        loaded.model("draft"),
        loaded.stored_weights("target"),
        config.prompt,
        config.k,
        config.tokens,
        config.seed,
    )
    order = [name, *(other for other in PITFALLS if other != name)]
    return state.Play(config, measured(bench, order), pitfalls.PitfallRecord())


def show() -> None:
    """Everything that moves: the two results of the chosen pitfall."""
    record = state.step(PAGE, play)
    if name not in record.seen:
        layout.notice(_("This pitfall is being measured; another one came first."))
        return
    row, seen = record.seen[name]
    st.markdown(
        f"**{pitfalls.title(name)}.** {literal(row.measure[:1].upper() + row.measure[1:])}:"
    )
    st.html(pitfalls.results_html(row, config.prompt, seen.texts))
    if seen.bars is not None:
        plot(pitfalls.bars_figure(seen.bars), "bars", alt=pitfalls.bars_alt(row), height=HEIGHT)
    layout.notice(*pitfalls.findings(name, seen.texts))


layout.heading(
    _("{count} ways to get it wrong, each done on purpose beside what is right").format(
        count=len(PITFALLS)
    )
)
names = {pitfalls.option(name): name for name in PITFALLS}
choice, settings = st.columns([1, 2.4], vertical_alignment="bottom")
with choice:
    help_text = _("The first five are those of the article; the others were seen in engines.")
    name = names[address.choose("pitfall", _("Pitfall"), list(names), help_text)]
with settings:
    play = controls.control_row(PAGE, ("k", "tokens"), ("prompt", "seed"), begin, temperature=0.0)
config = play.config
state.ticking(show, play)
layout.checked(play)
fault, right = st.columns(2)
for column, heading, item in (
    (fault, _("The fault's code"), PITFALLS[name].fault),
    (right, _("The code that has it right"), PITFALLS[name].right),
):
    with column:
        st.caption(f"{heading}: `{item.__module__}.{item.__qualname__}`")
        st.code(dedent(inspect.getsource(item)), language="python", height=200, wrap_lines=True)

controls.try_this(
    {
        _("Twice as far: k = 8"): RunConfig(k=8),
        _("A longer text: 192 tokens"): RunConfig(tokens=192),
        _("Another prompt"): RunConfig(prompt=PROMPT),
    }
)
layout.below(
    reading=_(
        "A fault lives in a copy of the step that is wrong on purpose; the engine itself has no "
        "switch for it. Laws are exact: every branch of a step is taken with its probability, "
        "for a target p = (0.6, 0.3, 0.1) and a drafter q = (0.5, 0.2, 0.3). Texts are greedy, "
        "so that one token's difference is a fault and no chance."
    ),
    formula=(),
    code=(Loop, laws.right_step, laws.exact_law),
    sources=layout.SOURCES[:2],
    export={"pitfalls": [flat(row) for row, _seen in play.result.seen.values()]},
    settings=config,
)
