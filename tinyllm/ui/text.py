"""Interface text: translation, and numbers written for people.

Every sentence is whole, so that a catalogue can reorder it; `_` looks it up.
"""

import gettext
import re
from html import escape

from tinyllm.quantities import format_bytes, format_count, format_rate, format_seconds

__all__ = [
    "VISIBLE",
    "_",
    "busy",
    "format_bytes",
    "format_count",
    "format_rate",
    "format_seconds",
    "literal",
    "visible",
]

VISIBLE = {"\n": "⏎", " ": "·", "\t": "⇥", "\r": "␍"}
_MOST_QUOTED = 400  # characters
_catalogue = gettext.translation("tinyllm", fallback=True)


def _(message: str) -> str:
    """The message in the interface's language (English until a catalogue is installed)."""
    return _catalogue.gettext(message)


def busy(text: str) -> str:
    """HTML of a sentence about work under way, beside a bar that moves by itself: a call of a
    large model takes long. A page's heading brings its style."""
    return f'<div class="tinyllm-busy">{escape(text)}</div>'


def literal(text: str) -> str:
    """Text as Markdown that shows it letter by letter, shortened when it is very long.

    Messages quote what a link holds: it must not become a picture, a link or a formula.
    """
    if len(text) > _MOST_QUOTED:
        text = text[:_MOST_QUOTED] + " ..."
    return re.sub(r"([\\`*_{}\[\]()<>#+\-.!|$:~])", r"\\\1", text)


def visible(piece: str) -> str:
    """A token's text with a sign for what has no ink."""
    return "".join(VISIBLE.get(symbol, symbol) for symbol in piece)
