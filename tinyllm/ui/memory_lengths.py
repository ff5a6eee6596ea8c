"""The panel of real lengths: what of a workload fits at once, beside the figure at full length."""

import streamlit as st

from tinyllm.errors import TinyllmError
from tinyllm.memory.choice import FULL, VLLM
from tinyllm.memory.concurrency import Concurrency, requests_that_fit
from tinyllm.memory.engines import vllm
from tinyllm.memory.lengths import Workload, parse_lengths, read_lengths
from tinyllm.memory.served import vllm_settings
from tinyllm.ui.memory_shown import Shown
from tinyllm.ui.text import _, format_count, literal
from tinyllm.ui.widgets import BIND

_CSV = "_lengths_csv"


def lengths(shown: Shown) -> None:
    """Requests of real lengths that fit, beside the figure at full length."""
    choice = shown.assessment.choice
    columns = st.columns([3, 3, 2, 1.4])
    form = _("full, fixed:tokens, uniform:low:high or lognormal:median:p95:cap")
    with columns[0]:
        st.text_input(_("Prompts"), FULL, key="prompts", help=form, **BIND)
    with columns[1]:
        st.text_input(_("Outputs"), FULL, key="outputs", help=form, **BIND)
    with columns[2]:
        text = _("Tokens that every prompt begins with, besides its own; held once.")
        st.number_input(_("Shared prefix"), 0, 2**24, 0, 64, key="shared_prefix", help=text, **BIND)
    with columns[3]:
        st.number_input(_("Seed"), 0, 9_999, 0, key="seed", **BIND)
    with st.container(horizontal=True, gap="small"):
        for name, pair in _examples().items():
            st.button(name, key=f"_lengths_{pair[0]}", on_click=_set_lengths, args=pair)
    with st.popover(_("Paste your own lengths (CSV)")):
        text = _("A prompt and an output length a line; not kept in the link.")
        st.text_area(_("Lengths"), key=_CSV, height=200, help=text)
    try:
        workload = _workload(shown)
        if choice.engine != VLLM:
            st.markdown(_("Only vLLM's pool is simulated here: choose vLLM above."))
        elif workload is None:
            st.markdown(_("Choose an example, or write lengths of your own."))
        else:
            _show_concurrency(shown, workload)
    except TinyllmError as error:
        st.error(literal(str(error)))


def _examples() -> dict[str, tuple[str, str]]:
    return {
        _("Chat"): ("lognormal:500:4000:16000", "lognormal:250:1000:4000"),
        _("Long documents"): ("uniform:8000:30000", "fixed:800"),
        _("All alike: 2,000 + 500"): ("fixed:2000", "fixed:500"),
    }


def _set_lengths(prompts: str, outputs: str) -> None:
    st.session_state["prompts"], st.session_state["outputs"] = prompts, outputs


def _workload(shown: Shown) -> Workload | None:
    """The requests described; None when they all have the full length."""
    choice = shown.assessment.choice
    pasted = st.session_state.get(_CSV, "").strip()
    if pasted:
        return Workload(*parse_lengths(pasted), choice.shared_prefix)
    if choice.prompts == choice.outputs == FULL:
        return None
    if FULL in (choice.prompts, choice.outputs):
        sentence = _("Prompts are {prompts} and outputs are {outputs}: give lengths for both.")
        raise TinyllmError(sentence.format(prompts=choice.prompts, outputs=choice.outputs))
    pair = read_lengths(choice.prompts), read_lengths(choice.outputs)
    return Workload(*pair, choice.shared_prefix)


@st.cache_data(max_entries=64, show_spinner=False)
def _simulated(query: str, _shown: Shown, _workload: Workload, workload: str) -> Concurrency:
    """One simulation; kept by the choice's query and the workload's text."""
    choice, room = _shown.assessment.choice, _shown.assessment.room
    settings = vllm_settings(choice, room.device, room.pool_low)
    pool = vllm.pool(_shown.assessment.subject.plan, settings)
    return requests_that_fit(pool, _workload, choice.seed)


def _show_concurrency(shown: Shown, workload: Workload) -> None:
    if shown.assessment.room.pool_low is None:
        st.markdown(_("Give the number of parameters, or the KV cache memory, under More."))
        return
    query = f"{shown.assessment.subject.plan!r} {shown.assessment.choice!r}"
    result = _simulated(query, shown, workload, repr(workload))
    tiles = st.columns(4)
    values = (
        (_("Mean that fit"), f"{result.mean:,.1f}"),
        (_("Fit in 95 % of draws"), format_count(result.in_95_percent)),
        (_("At full length (the log's figure)"), f"{result.at_full_length:,.2f}"),
        (
            _("In closed form"),
            "-" if result.closed_form is None else format_count(result.closed_form),
        ),
    )
    for tile, (label, value) in zip(tiles, values, strict=True):
        tile.metric(label, value)
    sentence = _(
        "{fills} pools filled with requests drawn one after the other, each counted at its end, in "
        "whole blocks, on one replica. {share:.1%} are longer than the context and count as cut "
        "to it."
    )
    st.caption(sentence.format(fills=format_count(result.fills), share=result.too_long))
