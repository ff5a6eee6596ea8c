"""KV cache: what it saves at every position, how it fills up, and what it weighs."""

import streamlit as st

from tinyllm.cache import DenseCache
from tinyllm.experiments.cached_decoding import PROMPT
from tinyllm.experiments.flops import matrix_flops
from tinyllm.experiments.kv_cache import REPEATS, CacheRecord, generated_tokens, table, watch
from tinyllm.experiments.memory import cache_size
from tinyllm.experiments.rows import flat
from tinyllm.experiments.settings import CONTEXT_LENGTH, RunConfig
from tinyllm.ui import controls, figures, findings, formulas, layout, loaded, state
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _, format_bytes, format_seconds

ensure_entry()
PAGE = "kv_cache"


def begin(config: RunConfig) -> state.Play[CacheRecord]:
    """A run to watch, one measured position at a time, then whole generations."""
    record = CacheRecord(generated_tokens(config))
    return state.Play(config, watch(config, loaded.model(config.target)), record)


def show() -> None:
    """Everything that moves: the chart with the cache below it, tiles, what to notice."""
    record = state.step(PAGE, play)
    rows, last = record.rows, record.rows[-1]
    chart, tiles = st.columns([4, 1])
    with chart:
        figure = figures.cache_figure(rows, shape, CONTEXT_LENGTH)
        plot(figure, "cache_chart", alt=findings.cache_chart(last), height=430)
    with tiles:
        st.metric(_("A step with the cache"), format_seconds(last.cached_seconds.median))
        st.metric(_("Recomputing everything"), format_seconds(last.uncached_seconds.median))
        st.metric(_("The cache holds"), format_bytes(last.used_bytes))
        layout.generation_tile(record.generation, record.tokens)
    layout.notice(findings.cache(last))


layout.heading(_("Without a cache, every token pays for all the tokens before it"))
play = controls.control_row(
    PAGE,
    ("kv_dtype", "kv_heads"),
    ("prompt", "temperature", "seed", "top_k", "top_p"),
    begin,
    tokens=8,
)
config = play.config
shape = loaded.model(config.target).config
state.ticking(show, play)
layout.timing(play, REPEATS)
controls.try_this(
    {
        _("The article's run: its prompt, greedy"): RunConfig(prompt=PROMPT, temperature=0.0),
        _("Half the bytes: float16"): RunConfig(kv_dtype="float16"),
        _("One KV head for all four query heads"): RunConfig(kv_heads=1),
        _("Both ways to shrink: int8, 1 KV head"): RunConfig(kv_dtype="int8", kv_heads=1),
    },
)

size = cache_size(shape, config.kv_dtype, CONTEXT_LENGTH)
layout.below(
    reading=_(
        "The cache keeps a key and a value for every layer (L), KV head (G) and token (S), each "
        "of D numbers of b bits, and for integers n float16 scales. Below, the formula for a "
        "full context beside the cache's own count and the sum of its arrays' nbytes. Then the "
        "operations of a step: two for every multiplication of its matrix products, counted from "
        "their shapes, for T new tokens behind S cached ones. The article counts two for every "
        "parameter but the positions' instead, and arrives at up to 3 % more."
    ),
    formula=(
        *formulas.cache_bytes(shape, CONTEXT_LENGTH, config.kv_dtype, size),
        *formulas.step_flops(shape, play.result.rows[-1].position),
    ),
    code=(DenseCache, matrix_flops),
    sources=layout.SOURCES,
    export={
        "steps": table(play.result.rows, shape),
        "generations": [flat(row) for row in (play.result.generation,) if row is not None],
    },
    settings=config,
    numbers=findings.cache_numbers(play.result, shape),
)
