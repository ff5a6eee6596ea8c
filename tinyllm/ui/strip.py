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

from tinyllm.experiments.speculative_record import Choice, Record, RoundRow
from tinyllm.tokenizer import Tokenizer
from tinyllm.ui.plot import FRONTEND
from tinyllm.ui.text import _, visible

_mount = st.components.v2.component(
    "tinyllm_strip",
    html='<div class="tinyllm-strip"></div>',
    css=(FRONTEND / "strip.css").read_text("utf-8"),
    js=(FRONTEND / "strip.js").read_text("utf-8"),
    isolate_styles=False,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of a strip: its text, its mark, and the place of its distributions."""

    text: str
    token: int
    mark: str
    place: tuple[int, int]  # (round, index)


def pieces(rows: Sequence[RoundRow], tokenizer: Tokenizer) -> list[Piece]:
    """The tokens of the rounds in order; rejected proposals stand behind what was kept.

    The first rejected proposal was tested and refused; those after it were never tested.
    """
    strip: list[Piece] = []
    for number, row in enumerate(rows):
        event = row.round
        marks: list[str] = ["accepted"] * event.accepted
        marks += [event.closing] * (len(event.tokens) - event.accepted)
        marked = [*zip(event.tokens, marks, range(len(marks)), strict=True)]
        if event.closing == "corrected":
            refused = range(event.accepted, len(event.proposed))
            marks = ["rejected" if index == event.accepted else "skipped" for index in refused]
            marked += zip(event.proposed[event.accepted :], marks, refused, strict=True)
        strip += [
            Piece(tokenizer.piece(token), token, mark, (number, index))
            for token, mark, index in marked
        ]
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
    title = _("token {id}")
    for number, piece in enumerate(tokens):
        classes = f"t t-{piece.mark}" + (" ws" if piece.text.isspace() else "")
        named = escape(title.format(id=piece.token))
        shown = escape(visible(piece.text))
        span = f'<span class="{classes}" data-n="{number}" title="{named}">{shown}</span>'
        groups.setdefault(piece.place[0], []).append(span)
    return " ".join(f'<span class="r">{"".join(spans)}</span>' for spans in groups.values())


def legend_html() -> str:
    """Every mark with its name."""
    return " ".join(
        f'<span class="k"><span class="t t-{mark}">a</span> {escape(name)}</span>'
        for mark, name in mark_names().items()
    )


def details(tokens: Sequence[Piece], rows: Sequence[RoundRow], tokenizer: Tokenizer) -> list[Any]:
    """For each token: mark, position, text, id, and the top tokens of p and q in its place."""
    names = mark_names()
    found: list[Any] = []
    for piece in tokens:
        number, index = piece.place
        top = [_bar(one, tokenizer) for one in rows[number].top[index]]
        place = rows[number].round.position + index
        found.append([names[piece.mark], place, visible(piece.text), piece.token, top])
    return found


def _bar(one: Choice, tokenizer: Tokenizer) -> list[Any]:
    """A token's text, id, p and q."""
    q = None if one.q is None else round(one.q, 4)
    return [visible(tokenizer.piece(one.token)), one.token, round(one.p, 4), q]


def focus(tokens: Sequence[Piece], *, following: bool) -> int:
    """The token to look at first: the newest of the target's own while a run goes on, later the
    last corrected one, where p and q differ; else the first."""
    marks = ("corrected", "bonus") if following else ("corrected",)
    own = [number for number, piece in enumerate(tokens) if piece.mark in marks]
    return own[-1] if own else 0


def token_strip(record: Record, key: str, *, following: bool, height: int = 146) -> None:
    """Show rounds; `following` keeps the newest token in view while a run goes on."""
    tokens = pieces(record.rows, record.tokenizer)
    _mount(
        key=key,
        data={
            "html": strip_html(tokens),
            "legend": legend_html(),
            "details": details(tokens, record.rows, record.tokenizer),
            "following": following,
            "focus": focus(tokens, following=following),
            "height": height,
            "wraps": any(len(piece.text) > 1 for piece in tokens),
            "words": {
                "inspect": _("Hover over a token, tap it or use the arrow keys"),
                "target": _("target p"),
                "drafter": _("drafter q"),
                "position": _("position"),
                "token": _("token"),
                "strip": _("Tokens of the run, in order"),
            },
        },
    )
