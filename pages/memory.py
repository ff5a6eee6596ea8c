"""Memory calculator: what a KV cache keeps, reserves and gets, for any public model."""

import streamlit as st

from tinyllm.memory.curves import capacity, growth
from tinyllm.memory.savings import savings
from tinyllm.ui import layout, memory_controls
from tinyllm.ui import memory_figures as figures
from tinyllm.ui import memory_findings as findings
from tinyllm.ui.memory_panels import PANELS, panels
from tinyllm.ui.memory_shown import Shown
from tinyllm.ui.memory_tiles import tiles
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _

ensure_entry()
HEIGHT = 262

layout.heading(_("A KV cache has three sizes: what it keeps, reserves and is given"))
pinned, assessment = memory_controls.choose(tuple(PANELS))
choice, subject = pinned.choice, pinned.subject
shown = Shown(
    pinned, assessment, growth(assessment), capacity(choice, subject), savings(assessment)
)

left, right = st.columns([3, 2])
with left:
    plot(
        figures.growth_figure(shown.growth, assessment),
        "growth_chart",
        alt=findings.growth_chart(shown.growth, assessment),
        height=HEIGHT,
        on_pick=lambda tokens, _gibibytes: memory_controls.set_place(tokens),
    )
with right:
    plot(
        figures.capacity_figure(shown.capacity, assessment),
        "capacity_chart",
        alt=findings.capacity_chart(shown.capacity),
        height=HEIGHT,
        on_pick=memory_controls.set_place,
    )
tiles(assessment)
layout.notice(findings.notice(assessment, shown.savings))
for doubt in findings.doubts(assessment):
    st.caption(doubt)
panels(shown)
