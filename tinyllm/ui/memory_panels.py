"""What the memory calculator shows below the fold, a panel at a time, drawn when it is opened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from tinyllm.errors import TinyllmError
from tinyllm.memory import findings as found
from tinyllm.memory.arithmetic import terms
from tinyllm.memory.assessment import Assessment, assess
from tinyllm.memory.choice import FULL, VLLM
from tinyllm.memory.commands import command
from tinyllm.memory.concurrency import Concurrency, requests_that_fit
from tinyllm.memory.curves import Capacity, Growth, growth
from tinyllm.memory.engines import vllm
from tinyllm.memory.explain import explain_log
from tinyllm.memory.lengths import Workload, parse_lengths, read_lengths
from tinyllm.memory.links import Pinned, read_query
from tinyllm.memory.placement import ranks_of, types_of
from tinyllm.memory.savings import Saving
from tinyllm.memory.served import vllm_settings
from tinyllm.ui import memory_figures as figures
from tinyllm.ui import memory_findings as findings
from tinyllm.ui import presenter
from tinyllm.ui.memory_controls import COMPARE, PANEL, set_controls
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _, format_bytes, format_count, literal

_MOST_PINNED = 4
_PINNED, _LOG, _CSV = "_pinned", "_log", "_lengths_csv"
_BIND: dict[str, Any] = {"bind": "query-params"}


@dataclass(frozen=True, slots=True)
class Shown:
    """All that the page shows of one choice."""

    pinned: Pinned
    assessment: Assessment
    growth: Growth
    capacity: Capacity
    savings: tuple[Saving, ...]


def panels(shown: Shown) -> None:
    """The panels behind tabs; only the open one is worked out."""
    title = _("The arithmetic, the command, your log, and our evidence")
    with st.expander(title, expanded=not presenter.active()):
        tabs = st.tabs(list(PANELS), key=PANEL, **_BIND)
        for tab, draw in zip(tabs, PANELS.values(), strict=True):
            if tab.open or draw is lengths:  # whose controls are part of the choice
                with tab:
                    draw(shown)


def formula(shown: Shown) -> None:
    """Slope and constant of each kind of layer, with this model's numbers."""
    here, choice = shown.assessment, shown.assessment.choice
    plan, types = here.subject.plan, types_of(choice)
    rows = terms(plan, choice.context, here.requests, types, ranks_of(choice))
    st.table(pd.DataFrame(findings.term_rows(rows)).set_index(_("layers")))
    piece = [one for one in plan.pieces(types) if one.start <= choice.context][-1]
    sentence = _(
        "One sequence of the whole model at this length: {constant} bytes + {slope} bytes × tokens."
    )
    numbers = {"constant": f"{float(piece.constant):,.0f}", "slope": f"{float(piece.slope):,g}"}
    st.markdown(sentence.format(**numbers))
    if choice.pp > 1:
        st.caption(_("Rows are of all pipeline stages; the chart shows the fullest one."))
    for note in plan.notes:
        st.caption(literal(note))


def commands(shown: Shown) -> None:
    """The command that starts the server, and what it would refuse."""
    made = command(shown.assessment)
    for warning in made.warnings:
        st.warning(literal(warning[:1].upper() + warning[1:]))
    st.code(made.text, language="bash")
    served = shown.assessment.served
    if served is not None and served.log:
        st.markdown(_("What {engine} would print:").format(engine=served.version))
        st.code("\n".join(served.log), language=None)
    for note in () if served is None else served.notes:
        st.caption(literal(note))


def savings(shown: Shown) -> None:
    """What one change gains; a button makes it."""
    if not shown.savings:
        st.markdown(_("No single change that is known here saves anything."))
        return
    st.table(pd.DataFrame(findings.saving_rows(shown.savings)).set_index(_("change")))
    with st.container(horizontal=True, gap="small"):
        for number, saving in enumerate(shown.savings):
            label = _("Take it: {what}").format(what=saving.what)
            st.button(label, key=f"_save_{number}", on_click=set_controls, args=(saving.choice,))


def lengths(shown: Shown) -> None:
    """Requests of real lengths that fit, beside the figure at full length."""
    choice = shown.assessment.choice
    columns = st.columns([3, 3, 2, 1.4])
    form = _("full, fixed:tokens, uniform:low:high or lognormal:median:p95:cap")
    with columns[0]:
        st.text_input(_("Prompts"), FULL, key="prompts", help=form, **_BIND)
    with columns[1]:
        st.text_input(_("Outputs"), FULL, key="outputs", help=form, **_BIND)
    with columns[2]:
        text = _("Tokens that every prompt begins with, besides its own; held once.")
        st.number_input(
            _("Shared prefix"), 0, 2**24, 0, 64, key="shared_prefix", help=text, **_BIND
        )
    with columns[3]:
        st.number_input(_("Seed"), 0, 9_999, 0, key="seed", **_BIND)
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


def log(shown: Shown) -> None:
    """A pasted start-up log, line by line, checked against this choice."""
    choice = shown.assessment.choice
    text = st.text_area(
        _("Start-up log of vLLM, SGLang or llama.cpp"),
        key=_LOG,
        height=180,
        persist_state="session",
        placeholder="GPU KV cache size: 290,864 tokens",
        help=_("Read on this server and kept nowhere."),
    )
    if not text.strip():
        sentence = _("It is checked against the model, KV dtype and tensor parallel chosen above.")
        st.caption(sentence)
        return
    try:
        explanation = explain_log(text, shown.assessment.subject.plan, choice.tp, choice.key_type)
    except TinyllmError as error:
        st.error(literal(str(error)))
        return
    if not explanation.lines:
        st.warning(_("No line of this log speaks of memory in words that are known here."))
        return
    rows = [
        {_("line"): line.number, _("text"): line.text, _("meaning"): line.meaning}
        for line in explanation.lines
    ]
    for verdict in explanation.verdicts:
        numbers = ", ".join(str(number) for number in verdict.lines)
        sentence = _("Line {numbers}: {text}.").format(numbers=numbers, text=verdict.text)
        (st.success if verdict.agrees else st.warning)(literal(sentence))
    st.dataframe(pd.DataFrame(rows), hide_index=True)


def _pinned() -> list[str]:
    """Queries of the choices to compare, from the address at first."""
    if _PINNED not in st.session_state:
        st.session_state[_PINNED] = st.query_params.get_all(COMPARE)[:_MOST_PINNED]
    kept: list[str] = st.session_state[_PINNED]
    return kept


def _pin(query: str) -> None:
    st.session_state[_PINNED] = [*_pinned(), query][:_MOST_PINNED]


def _unpin(number: int) -> None:
    st.session_state[_PINNED] = [one for at, one in enumerate(_pinned()) if at != number]


def compare(shown: Shown) -> None:
    """Up to four choices on one chart."""
    queries, rows = _pinned(), []
    try:
        full = len(queries) >= _MOST_PINNED
        text = _("Up to four models or settings; they stay in the address.")
        query = shown.pinned.query()
        st.button(
            _("Add the choice above"), key="_pin", on_click=_pin, args=(query,), disabled=full
        )
        st.caption(text)
    except TinyllmError as error:
        st.caption(literal(str(error)))
    for number, query in enumerate(queries):
        try:
            kept = read_query(query)
            rows.append((number, assess(kept.choice, kept.subject)))
        except TinyllmError as error:
            st.error(literal(_("{name}: {problem}").format(name=COMPARE, problem=error)))
            st.button(_("Remove it"), key=f"_unpin_{number}", on_click=_unpin, args=(number,))
    st.query_params[COMPARE] = queries
    if not rows:
        return
    longest = max(here.choice.context for _number, here in rows)
    lines = [(_label(number, here), growth(here, longest)) for number, here in rows]
    figure = figures.compare_figure(lines, _("Logical bytes of all requests, GiB"))
    alt = _("Memory against context, a line for each of {count} choices.").format(count=len(rows))
    plot(figure, "compare_chart", alt=alt, height=320, image="tinyllm-compare")
    st.table(pd.DataFrame([_compared(number, here) for number, here in rows]).set_index("#"))
    with st.container(horizontal=True, gap="small"):
        for number, here in rows:
            label = _("Remove {name}").format(name=_label(number, here))
            st.button(label, key=f"_unpin_{number}", on_click=_unpin, args=(number,))


def _label(number: int, here: Assessment) -> str:
    name = here.subject.name.rpartition("/")[2]
    return f"{number + 1}. {name}, {here.choice.kv_dtype}, {here.choice.engine}"


def _compared(number: int, here: Assessment) -> dict[str, Any]:
    served, choice = here.served, here.choice
    unknown = _("not known")
    reserved = unknown if served is None else format_bytes(served.reserved_bytes)
    return {
        "#": number + 1,
        _("model"): here.subject.name,
        _("setting"): f"{choice.engine}, {choice.kv_dtype}, {choice.tp * choice.pp} × {choice.gpu}",
        _("requests × context"): f"{choice.requests:,} × {choice.context:,}",
        _("logical"): format_bytes(here.logical_bytes),
        _("reserved"): reserved,
        _("requests that fit"): unknown if here.fits is None else format_count(here.fits),
    }


def data(shown: Shown) -> None:
    """The curves and terms as CSV, and what the link holds."""
    curves, capacity = shown.growth, shown.capacity
    table: dict[str, Sequence[int | None]] = {"tokens": curves.tokens}
    table |= {f"{kind}_bytes": sizes for kind, sizes in curves.kinds.items()}
    table |= {"reserved_bytes": curves.reserved}
    fits = {"tokens": capacity.tokens, "requests_that_fit": capacity.requests}
    here, choice = shown.assessment, shown.assessment.choice
    arithmetic = terms(
        here.subject.plan, choice.context, here.requests, types_of(choice), ranks_of(choice)
    )
    tables = {
        "growth": pd.DataFrame(table),
        "capacity": pd.DataFrame(fits),
        "layers": pd.DataFrame(findings.term_rows(arithmetic)),
    }
    with st.container(horizontal=True, gap="small"):
        for name, frame in tables.items():
            st.download_button(
                _("{table} as CSV").format(table=name),
                frame.to_csv(index=False),
                file_name=f"tinyllm-memory-{name}.csv",
                mime="text/csv",
                on_click="ignore",
                key=f"_csv_{name}",
            )
    st.caption(_("The camera button on a chart saves it as PNG."))
    try:
        st.markdown(_("The address of this page holds the whole choice. Its query:"))
        st.code("?" + shown.pinned.query(), language=None, wrap_lines=True)
    except TinyllmError as error:
        st.warning(literal(str(error)))
    st.dataframe(tables["growth"], height=220, hide_index=True)


@st.cache_data(show_spinner=False)
def _conformance() -> dict[str, Any]:
    return found.conformance()


def about(shown: Shown) -> None:
    """Our evidence: each preset by each engine beside its right value, and the model's source."""
    subject = shown.assessment.subject
    if subject.source:
        sentence = _("This model's facts: {source}.").format(source=subject.source)
        st.markdown(literal(sentence))
    results = _conformance()
    totals = found.conformance_totals(results)
    sentence = _(
        "Computed just now by `python -m tinyllm memory --conformance`: {logical} figures reckoned "
        "by hand, {vllm} of vLLM's own planner, {llamacpp} llama.cpp totals, {sglang} SGLang "
        "slopes and {reports} public reports are right."
    )
    shares = {
        name: _("{right:,} of {checked:,}").format(right=right, checked=checked)
        for name, (right, checked) in totals.items()
    }
    st.markdown(sentence.format(**shares))
    table = pd.DataFrame(found.conformance_table(results))
    st.dataframe(table, height=320, hide_index=True)
    reports = pd.DataFrame(results["reports"])
    st.dataframe(reports.drop(columns=["engine"]), height=220, hide_index=True)


PANELS: dict[str, Callable[[Shown], None]] = {
    _("Formula"): formula,
    _("Command"): commands,
    _("Save memory"): savings,
    _("Real lengths"): lengths,
    _("Paste your start-up log"): log,
    _("Compare"): compare,
    _("Data and link"): data,
    _("About"): about,
}
