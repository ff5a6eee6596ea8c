"""The race's three lanes, replayed in the browser from one measured record.

The server sends the record once; play, pause and scrubbing ask it nothing. All lanes are slowed
by the same factor, which stands beside them.
"""

from collections.abc import Sequence

import streamlit as st

from tinyllm.experiments.race import Lane, slow_down
from tinyllm.ui.plot import FRONTEND
from tinyllm.ui.text import _, format_rate, format_seconds

_mount = st.components.v2.component(
    "tinyllm_lanes",
    html='<div class="tinyllm-lanes"></div>',
    css=(FRONTEND / "lanes.css").read_text("utf-8"),
    js=(FRONTEND / "lanes.js").read_text("utf-8"),
    isolate_styles=False,
)


def lane_names() -> dict[str, tuple[str, str]]:
    """Name and explanation of every lane."""
    return {
        "uncached": (_("No cache"), _("every token recomputes the whole text")),
        "cached": (_("KV cache"), _("every token reuses the keys and values before it")),
        "speculative": (
            _("Cache + speculation"),
            _("a small model drafts, the target checks several in one call"),
        ),
    }


def race_lanes(record: Sequence[Lane], prompt: str, key: str, *, identity: str) -> None:
    """Show and replay a record; a new `identity` starts the replay again."""
    names = lane_names()
    factor = slow_down(tuple(record))
    slowest = record[0].tokens_per_second.median
    lanes = [
        {
            "name": names[lane.name][0],
            "about": names[lane.name][1],
            "texts": lane.texts,
            "accepted": lane.accepted,
            "ends": lane.ends,
            "speed": format_rate(lane.tokens_per_second.median),
            "ratio": f"{lane.tokens_per_second.median / slowest:.1f} ×",
            "took": format_seconds(lane.ends[-1]),
        }
        for lane in record
    ]
    _mount(
        key=key,
        data={
            "lanes": lanes,
            "prompt": prompt,
            "factor": factor,
            "identity": identity,
            "words": {
                "slowed": _("Replay, {factor} times slower than it ran").format(
                    factor=f"{factor:,.0f}" if factor >= 10 else f"{factor:g}"
                ),
                "play": _("Replay"),
                "pause": _("Pause"),
                "time": _("true time"),
                "tokens": _("tokens"),
                "rate": _("tokens/s"),
                "scrub": _("Position in the replay"),
                "accepted": _("drafted and accepted"),
            },
        },
    )
