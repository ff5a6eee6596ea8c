"""What the memory calculator shows below the fold, a panel at a time, drawn when it is opened."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from tinyllm.errors import TinyllmError
from tinyllm.memory import findings as found
from tinyllm.memory.arithmetic import terms
from tinyllm.memory.commands import command
from tinyllm.memory.explain import explain_log
from tinyllm.memory.placement import ranks_of, types_of
from tinyllm.ui import memory_findings as findings
from tinyllm.ui import presenter
from tinyllm.ui.chart_export import chart_export
from tinyllm.ui.memory_address import PANEL
from tinyllm.ui.memory_compare import compare
from tinyllm.ui.memory_controls import set_controls
from tinyllm.ui.memory_lengths import lengths
from tinyllm.ui.memory_shown import Shown
from tinyllm.ui.text import _, literal
from tinyllm.ui.widgets import BIND

_LOG = "_log"


def panels(shown: Shown) -> None:
    """The panels behind tabs; only the open one is worked out."""
    title = _("The arithmetic, the command, your log, and our evidence")
    with st.expander(title, expanded=not presenter.active()):
        tabs = st.tabs(list(PANELS), key=PANEL, **BIND)
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
    chart_export()
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
        "Computed on this machine, as by `python -m tinyllm memory --conformance`: {logical} "
        "figures reckoned by hand, {vllm} of vLLM's own planner, {llamacpp} llama.cpp totals, "
        "{sglang} SGLang slopes and {reports} public reports are right."
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
