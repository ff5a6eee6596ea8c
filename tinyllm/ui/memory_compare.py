"""The panel that compares up to four choices on one chart; they are kept in the address."""

from typing import Any

import pandas as pd
import streamlit as st

from tinyllm.errors import TinyllmError
from tinyllm.memory.assessment import Assessment, assess
from tinyllm.memory.curves import growth
from tinyllm.memory.links import read_query
from tinyllm.ui import memory_figures as figures
from tinyllm.ui.memory_address import COMPARE
from tinyllm.ui.memory_shown import Shown
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _, format_bytes, format_count, literal

_MOST_PINNED = 4
_PINNED = "_pinned"


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
    plot(figure, "compare_chart", alt=alt, height=320)
    st.table(pd.DataFrame([_compared(number, here) for number, here in rows]).set_index("#"))
    with st.container(horizontal=True, gap="small"):
        for number, here in rows:
            label = _("Remove {name}").format(name=_label(number, here))
            st.button(label, key=f"_unpin_{number}", on_click=_unpin, args=(number,))


def _label(number: int, here: Assessment) -> str:
    name = here.subject.name.rpartition("/")[2]
    return f"{number + 1}. {name}, {here.choice.kv_type}, {here.choice.engine}"


def _compared(number: int, here: Assessment) -> dict[str, Any]:
    served, choice = here.served, here.choice
    unknown = _("not known")
    reserved = unknown if served is None else format_bytes(served.reserved_bytes)
    return {
        "#": number + 1,
        _("model"): here.subject.name,
        _("setting"): f"{choice.engine}, {choice.kv_type}, {choice.tp * choice.pp} × {choice.gpu}",
        _("requests × context"): f"{choice.requests:,} × {choice.context:,}",
        _("logical"): format_bytes(here.logical_bytes),
        _("reserved"): reserved,
        _("requests that fit"): unknown if here.fits is None else format_count(here.fits),
    }


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
