"""Buttons that save the page's charts as PNG, SVG or one HTML page, made in the browser."""

import streamlit as st

from tinyllm.ui.plot import FRONTEND, serve_plotly
from tinyllm.ui.text import _

_FORMATS = ("png", "svg", "html")
_buttons = st.components.v2.component(
    "tinyllm_chart_export",
    html="".join(f'<button type="button" data-format="{name}"></button> ' for name in _FORMATS),
    css=(FRONTEND / "chart_export.css").read_text("utf-8"),
    js=(FRONTEND / "chart_export.js").read_text("utf-8"),
)


def chart_export() -> None:
    """The three buttons; they save the charts as they stand when pressed."""
    labels = {"png": _("Charts as PNG"), "svg": _("Charts as SVG"), "html": _("Charts as HTML")}
    _buttons(key="chart_export", data={"labels": labels, "plotly": serve_plotly()})
