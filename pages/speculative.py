"""Speculative decoding: draft k tokens, check them in one call, watch what is kept."""

import streamlit as st

from tinyllm.experiments.models import QUESTIONS
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.speculative import CacheSpan, pairs_for, watch
from tinyllm.experiments.speculative_record import Record, points_table, rounds_table
from tinyllm.speculative import SpeculativeDecoder, acceptance, theory, verification
from tinyllm.ui import controls, figures, findings, formulas, layout, loaded, state
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.strip import token_strip
from tinyllm.ui.text import _

ensure_entry()
PAGE = "speculative"
HEIGHT = 300


def begin(config: RunConfig) -> state.Play[Record]:
    """A run to watch; until measured anew, the points by k and the speed are those of before."""
    before, target = state.store(PAGE).get(config), loaded.model(config.target)
    record = Record(target.tokenizer) if before is None else before.result.restarted()
    events = watch(config, target, loaded.drafter(config))
    return state.Play(config, events, record)


def show() -> None:
    """Everything that moves: strip, charts, tiles, what to notice."""
    record = state.step(PAGE, play)
    token_strip(record, "strip", following=play.watched and play.running)
    live, curve, tiles = st.columns([2.1, 1.9, 1])
    with live:
        figure = figures.rounds_figure(record.rows, config, cache)
        plot(figure, "rounds_chart", alt=findings.rounds_chart(record), height=HEIGHT)
    with curve:
        figure = figures.curve_figure(record, config.k)
        plot(figure, "curve_chart", alt=findings.curve_chart(record), height=HEIGHT)
    with tiles:
        layout.speculative_tiles(record)
    layout.notice(findings.speculative(record, config, finished=not play.running))


layout.heading(_("Draft k tokens, check them in one call: fewer calls, the same output law"))
play = controls.control_row(
    PAGE,
    ("model", "k", "temperature", "kv_dtype"),
    ("prompt", "drafter", "kv_heads", "tokens", "seed", "top_k", "top_p"),
    begin,
)
config, record = play.config, play.result
target = loaded.model(config.target)
cache = CacheSpan.of(config, target)
state.ticking(show, play)
layout.timing(play, pairs_for(target))
controls.try_this(
    {
        _("Guess twice as far: k = 8"): RunConfig(k=8),
        _("Only the likeliest token: temperature 0"): RunConfig(temperature=0.0),
    }
    | (
        {
            _("No draft model at all: prompt lookup"): RunConfig(drafter="ngram", temperature=0.0),
            _("A smaller cache: int8, 2 KV heads"): RunConfig(kv_dtype="int8", kv_heads=2),
        }
        if config.chosen_model.characters
        else {
            _("Much to copy: rewrite a text"): RunConfig(prompt=QUESTIONS["rewrite"]),
            _("A smaller cache: int8"): RunConfig(kv_dtype="int8"),
        }
    ),
)

counters = record.counters
alpha = counters.acceptance_rate or 0.0
layout.below(
    reading=_(
        "A round proposes k tokens x drawn from q. The target gives p at every place in one "
        "call; x is accepted with probability min(1, p(x)/q(x)), and a refused place is drawn "
        "anew from max(0, p - q), normalised. What comes out has exactly the law p. Prompt lookup "
        "is certain, q(x) = 1: a place is drawn from p, and the proposal is kept where it is just "
        "that. If every "
        "proposal were accepted with the same probability α, independently, Eq. 1 would hold "
        "exactly; the measured points show how far that is from true."
    ),
    formula=(
        *formulas.tokens_per_call(alpha, config.k, counters),
        formulas.speedup(record.comparison),
    ),
    code=(
        verification.by_token,
        verification.by_drawing,
        acceptance.acceptance_probability,
        acceptance.residual,
        SpeculativeDecoder.round,
        theory.tokens_per_call,
    ),
    sources=layout.SOURCES,
    export={"rounds": rounds_table(record), "by_k": points_table(record)},
    settings=config,
    numbers=findings.counter_rows(counters),
)
