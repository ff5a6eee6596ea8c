"""The guide's widgets: symptoms to tick, techniques with their flags, and measured answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st

from tinyllm.experiments.answers import Answer
from tinyllm.experiments.guide import (
    DEFAULT_SYMPTOMS,
    ENGINES,
    SYMPTOMS,
    TECHNIQUES,
    Flag,
    Technique,
)
from tinyllm.ui.navigation import entry_of, page
from tinyllm.ui.text import _, literal

_WIDTHS = [3, 2.6, 1.7, 3.2]
_IN_A_ROW = 4  # symptoms


@dataclass(slots=True)
class Answers:
    """The answers so far."""

    given: list[Answer] = field(default_factory=list)

    def take(self, answer: Answer) -> bool:
        """Take one in; each is worth showing."""
        self.given.append(answer)
        return True


def wrong_parameters() -> dict[str, str]:
    """What is wrong in the address, by control; ask before the widgets drop it."""
    accepted = dict.fromkeys(SYMPTOMS, ("true", "false")) | {"engine": ENGINES}
    problems = {}
    for parameter, values in accepted.items():
        given = st.query_params.get_all(parameter)
        if len(given) > 1:
            problems[parameter] = f"{parameter} is given {len(given)} times: give it once"
        elif given and given[0] not in values:
            known = ", ".join(values)
            problems[parameter] = f"{parameter} must be one of {known}, not {given[0]!r}"
    return problems


def symptoms() -> dict[str, bool]:
    """Which symptoms are ticked."""
    ticked = {}
    for start in range(0, len(SYMPTOMS), _IN_A_ROW):
        columns = st.columns(_IN_A_ROW)
        for symptom, column in zip(list(SYMPTOMS)[start:], columns, strict=False):
            default = symptom in DEFAULT_SYMPTOMS
            label = _(SYMPTOMS[symptom])
            ticked[symptom] = column.checkbox(label, default, symptom, bind="query-params")
    return ticked


def engine() -> str:
    """The engine whose flags are shown."""
    chosen: str = st.segmented_control(
        _("Flags for"),
        ENGINES,
        default=ENGINES[0],
        required=True,
        key="engine",
        bind="query-params",
    )
    return chosen


def techniques(found: Sequence[Technique], engine_name: str) -> None:
    """A line for each technique: what it does, what it costs, where to see it, its flag."""
    for technique in found:
        does, costs, shown, flag = st.columns(_WIDTHS, vertical_alignment="top")
        does.markdown(f"**{_(technique.name)}**  \n{_(technique.does)}")
        costs.markdown(f"*{_('Costs.')}* {_(technique.costs)}")
        with shown:
            _page_link(technique.page)
        with flag:
            _flag(technique.flag(engine_name))


def _page_link(stem: str) -> None:
    """A link to the page that shows a technique; its name alone while there is no such page."""
    entry = entry_of(stem)
    if entry.path.exists():
        st.page_link(page(entry), label=entry.title)
    else:
        st.caption(entry.title)


def _flag(flag: Flag) -> None:
    if flag.command:
        st.code(flag.command, language=None, wrap_lines=True)
    if flag.note:
        st.caption(_(flag.note))


def answer_list(given: Sequence[Answer]) -> None:
    """Question and answer, two side by side."""
    for start in range(0, len(given), 2):
        for answer, column in zip(given[start : start + 2], st.columns(2), strict=False):
            column.markdown(f"**{_(answer.question)}**  \n{literal(answer.text(_))}")


def notice(found: Sequence[Technique]) -> str:
    """How many techniques help with what is ticked, and which with most of it."""
    if not found:
        return _("Nothing is ticked: tick what hurts. The answers below need no tick.")
    return _("{count} of {all} techniques help with what is ticked; most of it: {name}.").format(
        count=len(found), all=len(TECHNIQUES), name=f"**{_(found[0].name)}**"
    )
