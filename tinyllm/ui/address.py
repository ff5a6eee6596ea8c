"""What an address of the app gets wrong: found before widgets drop it, and said until mended."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.settings import Settings, problem_of
from tinyllm.memory.choice import OWN
from tinyllm.memory.presets import presets
from tinyllm.ui.text import _, literal
from tinyllm.ui.widgets import BIND


def wrong_parameters(
    kind: type[Settings], names: Sequence[str], model: ModelChoice
) -> dict[str, str]:
    """What is wrong with URL parameters of this page, by field; ask before the widgets drop them.

    One prompt is left alone: its text is the visitor's, and the page says what is wrong with it.
    """
    problems = {}
    for field in names:
        given = st.query_params.get_all(field)
        if field == "model" and given in ([name] for name in (*presets(), OWN)):
            continue  # left over from the calculator
        if given and (field != "prompt" or len(given) > 1):
            problem = problem_of(field, given, kind, model)
            if problem is not None:
                problems[field] = problem
    return problems


def warn(page: str, wrong: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """Say what was wrong in the address, until the visitor moves the control concerned.

    `wrong` holds a problem by control, `values` what every control of the page shows now.
    """
    key = f"_wrong_{page}"
    said: dict[str, tuple[str, Any]] = st.session_state.get(key, {})
    said = said | {field: (problem, values[field]) for field, problem in wrong.items()}
    still = {field: one for field, one in said.items() if values[field] == one[1]}
    st.session_state[key] = still
    sentence = _("{problem}. This page uses {value}.")
    for problem, value in still.values():
        st.warning(literal(sentence.format(problem=problem, value=repr(value))))


def choose(field: str, label: str, options: Sequence[str], help_text: str) -> str:
    """A choice that is no setting of a run; the address carries its text as `field`.

    A text in the address that is none of the options is said, until another one is chosen.
    """
    key = f"_wrong_{field}"
    raw = st.query_params.get(field)
    messages = st.container()
    chosen = str(st.selectbox(label, options, key=field, help=help_text, **BIND))
    if raw is not None and raw not in options:
        st.session_state[key] = raw[:40], chosen
    given, instead = st.session_state.get(key, ("", ""))
    if instead == chosen:
        sentence = _(
            "there is no {field} {given!r} and this page uses {chosen!r}: choose one of {options}"
        )
        listed = ", ".join(options)
        said = sentence.format(field=field, options=listed, given=given, chosen=chosen)
        messages.warning(literal(said))
    return chosen
