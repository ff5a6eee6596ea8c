"""The frame of a page: the claim above, what to notice, and the part below the fold."""

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import streamlit as st

from tinyllm.experiments.cached_decoding import GenerationRow
from tinyllm.experiments.settings import Settings
from tinyllm.experiments.speculative_record import Record
from tinyllm.machine import this_machine
from tinyllm.ui import presenter
from tinyllm.ui.chart_export import chart_export
from tinyllm.ui.state import Play
from tinyllm.ui.text import _, busy, format_count, format_seconds

SOURCES = (
    _(
        "Y. Leviathan, M. Kalman, Y. Matias, *Fast Inference from Transformers via Speculative "
        "Decoding*, ICML 2023, arXiv 2211.17192: the acceptance rule, Eq. 1 and Theorem 3.8."
    ),
    _(
        "C. Chen and others, *Accelerating Large Language Model Decoding with Speculative "
        "Sampling*, 2023, arXiv 2302.01318: Theorem 1, the output law does not change."
    ),
    _("N. Shazeer, *Fast Transformer Decoding: One Write-Head is All You Need*, arXiv 1911.02150."),
    _("J. Ainslie and others, *GQA: Training Generalized Multi-Query Models*, arXiv 2305.13245."),
)

_CSS = """<style>
.block-container { padding: 2.9rem 2rem 1rem; }
[data-testid="stStatusWidget"] { display: none; }
[data-testid="stHeader"] { height: 2.8rem; min-height: 2.8rem; }
.block-container [data-testid="stVerticalBlock"] { gap: 0.5rem; }
.block-container h1 { padding: 0 0 0.35rem; line-height: 1.2; }
.block-container [data-testid="stHeading"] { margin-bottom: 0.3rem; }
.block-container [data-stale="true"] { opacity: 1; transition: none; }
.block-container [data-testid="stCaptionContainer"] { margin-bottom: 0; }
.block-container .katex-display { padding: 0.4rem 0 0.5rem; overflow: auto hidden; }
.tinyllm-busy { display: flex; align-items: center; gap: 0.6em; font-size: 0.875rem; }
.tinyllm-busy::before { content: ""; width: 3rem; height: 0.35rem; border-radius: 3px;
  background: linear-gradient(90deg, transparent, currentColor, transparent) 0 0 / 50% 100%
  repeat-x; animation: tinyllm-busy 1.2s linear infinite; }
@keyframes tinyllm-busy { to { background-position: 3rem 0; } }
@media (prefers-reduced-motion: reduce) { .tinyllm-busy::before { animation-duration: 6s; } }
@media (max-width: 640px) {
  .block-container { padding: 3rem 1rem 1rem; }
  .block-container h1 { font-size: 1.3rem; }
}
</style>"""


def heading(claim: str, sentence: str | None = None) -> None:
    """The page's claim, and at most one sentence under it."""
    st.html(_CSS)
    st.title(claim, anchor=False)
    if sentence:
        st.markdown(sentence)


def notice(*sentences: str) -> None:
    """The one thing to notice, with this run's numbers in it; each sentence is whole."""
    st.markdown(" ".join((f"**{_('What to notice.')}**", *sentences)))


def timing(play: Play[Any], repeats: int) -> None:
    """How and when the times on this page were measured."""
    once = _("Measured at {clock}. {machine}.")
    several = _("Measured at {clock}, medians of {repeats} runs in turn. {machine}.")
    sentence = several if repeats > 1 else once
    _progress(play, _("Measuring in turn ..."), sentence, repeats=repeats)


def drawn(play: Play[Any], draws: int) -> None:
    """How and when the samples on this page were drawn."""
    sentence = _("{draws} draws with seed {seed} at {clock}. {machine}.")
    words = {"draws": format_count(draws), "seed": play.config.seed}
    _progress(play, _("Drawing ..."), sentence, **words)


def checked(play: Play[Any]) -> None:
    """When what this page shows was tried; nothing is timed."""
    sentence = _("Tried at {clock} with seed {seed}. {machine}.")
    _progress(play, _("Trying one after the other ..."), sentence, seed=play.config.seed)


def counted(play: Play[Any]) -> None:
    """That what this page shows was counted; nothing is timed."""
    sentence = _("Counted at {clock} with seed {seed}. {machine}.")
    _progress(play, _("Counting ..."), sentence, seed=play.config.seed)


def _progress(play: Play[Any], underway: str, finished: str, **words: object) -> None:
    """Where a run stands: a sentence while it lasts, and one for when it came to its end."""
    if play.stopped:
        st.caption(_("Stopped. Run begins again at the start."))
    elif play.running:
        st.html(busy(underway))
    else:
        clock = f"{play.began:%H:%M:%S}"
        st.caption(finished.format(clock=clock, machine=this_machine(), **words))


def speculative_tiles(record: Record) -> None:
    """The three numbers beside the charts."""
    counters, comparison = record.counters, record.comparison
    alpha, per_call = counters.acceptance_rate, counters.tokens_per_call
    st.metric(_("Acceptance rate α"), "-" if alpha is None else f"{alpha:.0%}")
    st.metric(_("Tokens per target call"), "-" if per_call is None else f"{per_call:.2f}")
    speed = (
        "-" if comparison is None else _("{times:.2f} ×").format(times=comparison.speedup.median)
    )
    st.metric(_("Speed against plain"), speed)


def generation_tile(row: GenerationRow | None, tokens: int) -> None:
    """What a whole generation takes with the cache, and what it would take without."""
    st.metric(
        _("{tokens} tokens with the cache").format(tokens=tokens),
        "-" if row is None else format_seconds(row.cached_seconds.median),
        _("being measured")
        if row is None
        else _("instead of {time}").format(time=format_seconds(row.uncached_seconds.median)),
        delta_color="off",
        delta_arrow="off",
    )


def below(
    *,
    formula: Sequence[str],
    reading: str,
    code: Sequence[Any],
    sources: Sequence[str],
    export: Mapping[str, Sequence[Mapping[str, Any]]],
    settings: Settings,
    numbers: Sequence[tuple[str, str, str]] = (),
) -> None:
    """Below the fold: formula, the engine's source, where it comes from, and the data.

    `formula` holds LaTeX lines (symbols first, then numbers), `numbers` names, values and
    meanings, `export` tables by name.
    """
    with st.expander(_("How it works, the code, and the data"), expanded=not presenter.active()):
        tabs = st.tabs([_("Formula"), _("Source code"), _("Where it comes from"), _("Data")])
        with tabs[0]:
            st.markdown(reading)
            for line in formula:
                st.latex(line)
            if numbers:
                names = [_("figure"), _("this run"), _("meaning")]
                st.table(pd.DataFrame(list(numbers), columns=names).set_index(names[0]))
        with tabs[1]:
            for item in code:
                st.caption(f"`{item.__module__}.{item.__qualname__}`")
                st.code(inspect.getsource(item), language="python")
        with tabs[2]:
            st.markdown("\n".join(f"- {source}" for source in sources))
        with tabs[3]:
            _downloads(export, asdict(settings))


def _downloads(
    export: Mapping[str, Sequence[Mapping[str, Any]]], settings: Mapping[str, Any]
) -> None:
    """A CSV file for every table, and everything in one JSON file."""
    with st.container(horizontal=True):
        for name, table in export.items():
            st.download_button(
                _("{table} as CSV").format(table=name),
                pd.DataFrame(list(table)).to_csv(index=False),
                file_name=f"tinyllm-{name}.csv",
                mime="text/csv",
                on_click="ignore",
                key=f"_csv_{name}",
            )
        st.download_button(
            _("Everything as JSON"),
            json.dumps({"settings": dict(settings)} | {k: list(v) for k, v in export.items()}),
            file_name="tinyllm-run.json",
            mime="application/json",
            on_click="ignore",
            key="_json",
        )
    chart_export()
    for name, table in export.items():
        st.caption(name)
        st.dataframe(pd.DataFrame(list(table)), height=220, hide_index=True)
