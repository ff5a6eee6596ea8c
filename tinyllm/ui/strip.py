"""The token strip: every token as a small box whose mark says how it came to be.

Accepted, corrected and bonus tokens carry their own sign and border, rejected proposals are
struck through with a dashed edge: never hue alone. Builds HTML; the component around it lets a
visitor hover over, tap or walk through the tokens to see p and q.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import streamlit as st

from tinyllm.experiments.speculative import RoundRow, choices
from tinyllm.tokenizer import ALPHABET
from tinyllm.ui.plot import FRONTEND
from tinyllm.ui.text import VISIBLE, _, visible

_mount = st.components.v2.component(
    "tinyllm_strip",
    html='<div class="tinyllm-strip"></div>',
    css=(FRONTEND / "strip.css").read_text("utf-8"),
    js=(FRONTEND / "strip.js").read_text("utf-8"),
    isolate_styles=False,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of a strip: its mark, and the place of its distributions, (round, index)."""

    symbol: str
    mark: str
    place: tuple[int, int]


def pieces(rows: Sequence[RoundRow]) -> list[Piece]:
    """The tokens of the rounds in order; rejected proposals stand behind what was kept.

    The first rejected proposal was tested and refused; those after it were never tested.
    """
    strip: list[Piece] = []
    for number, row in enumerate(rows):
        event = row.round
        for index, token in enumerate(event.tokens):
            mark: str = "accepted" if index < event.accepted else event.closing
            strip.append(Piece(ALPHABET[token], mark, (number, index)))
        if event.closing != "corrected":
            continue
        for index in range(event.accepted, len(event.proposed)):
            mark = "rejected" if index == event.accepted else "skipped"
            strip.append(Piece(ALPHABET[event.proposed[index]], mark, (number, index)))
    return strip


def mark_names() -> dict[str, str]:
    """What each mark means, for the legend and for screen readers."""
    return {
        "accepted": _("accepted"),
        "corrected": _("corrected"),
        "bonus": _("bonus"),
        "rejected": _("rejected"),
        "skipped": _("not tested"),
    }


def strip_html(tokens: Sequence[Piece]) -> str:
    """The strip's HTML: groups (rounds) of spans, with spaces between so that lines wrap."""
    groups: dict[int, list[str]] = {}
    for number, piece in enumerate(tokens):
        shown = escape(visible(piece.symbol))
        classes = f"t t-{piece.mark}" + (" ws" if piece.symbol in VISIBLE else "")
        span = f'<span class="{classes}" data-n="{number}">{shown}</span>'
        groups.setdefault(piece.place[0], []).append(span)
    return " ".join(f'<span class="r">{"".join(spans)}</span>' for spans in groups.values())


def legend_html() -> str:
    """Every mark with its name."""
    return " ".join(
        f'<span class="k"><span class="t t-{mark}">a</span> {escape(name)}</span>'
        for mark, name in mark_names().items()
    )


def details(tokens: Sequence[Piece], rows: Sequence[RoundRow]) -> list[Any]:
    """For each token: its mark, its position and the top symbols of p and q there."""
    names = mark_names()
    found: list[Any] = []
    for piece in tokens:
        event = rows[piece.place[0]].round
        top = [
            [visible(one.symbol), round(one.p, 4), one.q and round(one.q, 4)]
            for one in choices(event, piece.place[1])
        ]
        place = event.position + piece.place[1]
        found.append([names[piece.mark], place, piece.symbol, top])
    return found


def focus(tokens: Sequence[Piece], *, following: bool) -> int:
    """The token to look at first: the newest of the target's own while a run goes on, later the
    last corrected one, where p and q differ; else the first."""
    marks = ("corrected", "bonus") if following else ("corrected",)
    own = [number for number, piece in enumerate(tokens) if piece.mark in marks]
    return own[-1] if own else 0


def token_strip(rows: Sequence[RoundRow], key: str, *, following: bool, height: int = 146) -> None:
    """Show rounds; `following` keeps the newest token in view while a run goes on."""
    tokens = pieces(rows)
    _mount(
        key=key,
        data={
            "html": strip_html(tokens),
            "legend": legend_html(),
            "details": details(tokens, rows),
            "following": following,
            "focus": focus(tokens, following=following),
            "height": height,
            "words": {
                "inspect": _("Hover over a token, tap it or use the arrow keys"),
                "target": _("target p"),
                "drafter": _("drafter q"),
                "position": _("position"),
                "strip": _("Tokens of the run, in order"),
            },
        },
    )
