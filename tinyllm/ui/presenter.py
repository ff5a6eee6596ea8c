"""Presenter mode: ?present=true hides the navigation and enlarges everything for a stage.

PageDown and PageUp (what a clicker sends) go to the next and previous page, G presses Run and
S presses Stop. Explanation below the fold stays folded.
"""

import streamlit as st

from tinyllm.ui.plot import FRONTEND

PARAMETER = "present"

_CSS = """<style>
html { font-size: 20px; }
header[data-testid="stHeader"] { display: none; }
[data-testid="stSidebar"] { display: none; }
.block-container { max-width: none; }
</style>"""

_keys = st.components.v2.component(
    "tinyllm_presenter_keys",
    html="<span hidden></span>",
    js=(FRONTEND / "presenter.js").read_text("utf-8"),
    isolate_styles=False,
)


def active() -> bool:
    """Whether this session presents; remembered when a link drops the parameter."""
    if PARAMETER in st.query_params:
        st.session_state["_presenting"] = st.query_params[PARAMETER].lower() == "true"
    return bool(st.session_state.get("_presenting", False))


def scale() -> float:
    """Factor for chart fonts and heights: 1.25 on a stage (20 px instead of 16 px)."""
    return 1.25 if active() else 1.0


def start() -> None:
    """Apply presenter mode to the page that is about to run; called once by app.py."""
    if active():
        st.html(_CSS)


def listen(previous: bool, following: bool) -> None:
    """Follow the clicker; say whether there is a previous and a next page."""
    if active():
        _keys(key="presenter_keys", data={"previous": previous, "next": following})
