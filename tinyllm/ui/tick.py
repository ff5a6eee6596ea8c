"""A clock in the browser that asks for the next tick of a run.

Streamlit's own, run_every, starts while the script that draws the first tick still runs; then
charts are lost now and then, see frontend/tick.js. This one also waits for a slow browser, and
slows down in a hidden tab.
"""

import streamlit as st

from tinyllm.ui.plot import FRONTEND

_KEY = "_tick"
_clock = st.components.v2.component(
    "tinyllm_tick",
    # Hidden with the gap that the page would leave for it.
    css=f".st-key-{_KEY} {{ display: none; }}",
    js=(FRONTEND / "tick.js").read_text("utf-8"),
    isolate_styles=False,
)


def ask_again(number: int | None, seconds: float, first: bool) -> None:
    """Run this fragment again after so many seconds; never, where number is None.

    Every tick needs a number that none had before: the browser asks once for each. `first` says
    that the whole page is being drawn, and no tick has run yet.
    """
    data = {"number": number, "milliseconds": 1000 * seconds, "first": first}
    _clock(key=_KEY, data=data, on_tick_change=_asked)


def _asked() -> None:
    """Nothing: Streamlit wants to be told of a trigger before it runs the fragment for it."""
