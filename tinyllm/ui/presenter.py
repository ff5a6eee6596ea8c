"""Presenter mode: ?present=true hides the navigation and enlarges everything for a stage.

PageDown and PageUp (what a clicker sends) go to the next and previous page, G presses Run and
S presses Stop. Explanation below the fold stays folded. The theme is the visitor's: Streamlit sets
it in the browser alone, as it loads; &embed_options=light_theme in the address makes it light.
"""

import streamlit as st

from tinyllm.ui.plot import FRONTEND

PARAMETER = "present"

# The font follows the width of the screen, as a projector's picture does: 17 px at 1280 (all
# that fits there), 21 px at 1920. Charts take their font and height from it.
_CSS = """<style>
html { font-size: clamp(17px, 1.1vw, 44px); }
header[data-testid="stHeader"], [data-testid="stSidebar"] { display: none; }
.stApp .block-container { padding-top: 0.6rem; }
.st-key-presenter_previous, .st-key-presenter_next { display: none; }
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


def start() -> None:
    """Apply presenter mode to the page that is about to run; called once by app.py."""
    if active():
        st.html(_CSS)


def listen(previous: bool, following: bool) -> None:
    """Follow the clicker; say whether there is a previous and a next page."""
    if active():
        _keys(key="presenter_keys", data={"previous": previous, "next": following})
