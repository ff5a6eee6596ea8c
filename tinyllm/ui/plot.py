"""A Plotly chart that is updated in place, without Streamlit's remount on every change.

A small component calls Plotly.react on one node. plotly.js is served from the installed plotly
package: no content delivery network, no logo, no button that uploads. Figures are plain dicts
whose colours are palette names ("$0", "$text"), filled in by the browser from the theme.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

Figure = dict[str, Any]

FRONTEND = Path(__file__).parent / "frontend"
_NAME = "tinyllm.plot"
_HTML = '<div class="tinyllm-plot" role="img" style="width:100%"></div>'


def serve_plotly() -> str:
    """Let Streamlit serve the installed plotly.min.js; the path of its address."""
    manager = get_bidi_component_manager()
    if manager.get_component_path(_NAME) is None:
        spec = importlib.util.find_spec("plotly")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("plotly is not installed; pip install -r requirements.txt")
        manifest = ComponentManifest(
            name="tinyllm",
            version="1",
            components=[ComponentConfig(name="plot", asset_dir="package_data")],
        )
        manager.register_from_manifest(manifest, Path(spec.origin).parent)
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    prefix = f"/{base}" if base else ""
    return f"{prefix}/_stcore/bidi-components/{_NAME}/plotly.min.js"


serve_plotly()
_mount = st.components.v2.component(
    _NAME, html=_HTML, js=(FRONTEND / "plot.js").read_text("utf-8"), isolate_styles=False
)


def plot(
    figure: Figure,
    key: str,
    *,
    alt: str,
    height: int = 340,
    on_pick: Callable[[float, float], object] | None = None,
) -> None:
    """Draw a figure in the node that belongs to `key`, or update it there.

    A key can be drawn once in a script run; to animate, draw it in a fragment that reruns.
    Height is in pixels at a root font of 16 px and grows with that font. `alt` says in words
    what the chart shows, computed from its data. `on_pick` is called with the place of
    a click.
    """
    data = {
        "name": key,
        "figure": figure,
        "plotly": serve_plotly(),
        "alt": alt,
        "height": height,
        "picks": on_pick is not None,
    }
    if on_pick is None:
        _mount(key=key, data=data)
        return

    def picked() -> None:
        place = st.session_state[key].pick
        on_pick(float(place["x"]), float(place["y"]))

    _mount(key=key, data=data, on_pick_change=picked)
