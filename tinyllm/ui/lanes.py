"""The race's three lanes: live while they run, then replayed in the browser from one record.

For a replay the server sends the record once; play, pause and scrubbing ask it nothing. All lanes
are slowed by the same factor, which stands beside them.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import streamlit as st

from tinyllm.cache import format_of
from tinyllm.experiments.race import LANES, Lane, slow_down
from tinyllm.experiments.request import prompt_ids
from tinyllm.experiments.settings import RunConfig
from tinyllm.model import Transformer
from tinyllm.ui.plot import FRONTEND
from tinyllm.ui.text import _, format_bytes, format_rate, format_seconds

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
            _("a drafter proposes, the target checks several in one call"),
        ),
    }


def race_lanes(
    record: Sequence[Lane],
    config: RunConfig,
    target: Transformer,
    key: str,
    *,
    identity: str,
    live: bool = False,
) -> None:
    """Show lanes as far as they are, or replay them; a new `identity` starts again."""
    factor = slow_down(tuple(record)) if record else 1.0
    _mount(
        key=key,
        data={
            "lanes": lanes_data(record, config, target, live=live),
            # A question and its answer are two texts, a beginning and its continuation are one.
            "prompt": config.prompt + ("\n" if target.tokenizer.can_chat else ""),
            "factor": factor,
            "identity": identity,
            "live": live,
            "words": {
                "slowed": _replay_words(factor),
                "live": _("Live: the lane that has taken the least time makes the next step"),
                "play": _("Replay"),
                "pause": _("Pause"),
                "tokens": _("tokens"),
                "rate": _("tokens/s"),
                "scrub": _("Position in the replay"),
            },
        },
    )


def _replay_words(factor: float) -> str:
    if factor <= 1:
        return _("Replay, as fast as it ran")
    shown = f"{factor:,.0f}" if factor >= 10 else f"{factor:g}"
    return _("Replay, {factor} times slower than it ran").format(factor=shown)


def lanes_data(
    record: Sequence[Lane], config: RunConfig, target: Transformer, *, live: bool
) -> list[dict[str, Any]]:
    """All three lanes for the browser, empty where one has not begun."""
    begun = {lane.name: lane for lane in record}
    slowest = begun[LANES[0]].tokens_per_second.median if LANES[0] in begun else None
    prompt = len(prompt_ids(config.prompt, target))
    shown = []
    for name, (title, about) in lane_names().items():
        lane = begun.get(name)
        rate = None if lane is None else lane.tokens_per_second.median
        shown.append(
            {
                "name": title,
                "about": about,
                "pieces": lane.pieces if lane else [],
                "accepted": lane.accepted if lane else [],
                "ends": lane.ends if lane else [],
                "caches": [] if lane is None else _caches(lane, prompt, config, target),
                "most": config.tokens if live or lane is None else lane.n_tokens,
                "speed": "-" if rate is None else format_rate(rate),
                "ratio": _("{times:.1f} ×").format(times=rate / slowest)
                if rate and slowest
                else "-",
                "took": format_seconds(lane.ends[-1]) if lane else "-",
            }
        )
    return shown


def _caches(lane: Lane, prompt: int, config: RunConfig, target: Transformer) -> list[str]:
    """What the cache holds after each step, in words; it lacks the newest token."""
    if lane.name == LANES[0]:
        return []
    kind, sentence = format_of(config.kv_dtype), _("cache: {size}")
    made = accumulate(map(len, lane.pieces))
    sizes = (kind.bytes(target.config, prompt + one - 1) for one in made)
    return [sentence.format(size=format_bytes(size)) for size in sizes]
