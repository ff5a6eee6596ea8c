"""Interface text: translation, and numbers written for people.

Every sentence is whole, so that a catalogue can reorder it; `_` looks it up. Bytes are in
binary units (KiB, MiB, GiB), always named.
"""

import gettext
import re

_MOST_QUOTED = 400  # characters
_catalogue = gettext.translation("tinyllm", fallback=True)


def _(message: str) -> str:
    """The message in the interface's language (English until a catalogue is installed)."""
    return _catalogue.gettext(message)


def literal(text: str) -> str:
    """Text as Markdown that shows it letter by letter, shortened when it is very long.

    Messages quote what a link holds: it must not become a picture, a link or a formula.
    """
    if len(text) > _MOST_QUOTED:
        text = text[:_MOST_QUOTED] + " ..."
    return re.sub(r"([\\`*_{}\[\]()<>#+\-.!|$:~])", r"\\\1", text)


def format_bytes(count: float) -> str:
    """Bytes in binary units with three figures: 96 B, 12.0 KiB, 1.50 MiB."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        count /= 1024
        if count < 1024 or unit == "TiB":
            break
    digits = 2 if count < 10 else 1 if count < 100 else 0
    return f"{count:.{digits}f} {unit}"


def format_seconds(seconds: float) -> str:
    """A duration with three figures: 85 µs, 0.52 ms, 1.25 s."""
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 1000 and (unit == "ms" or seconds * factor < 100):
            value = seconds * factor
            digits = 0 if unit == "µs" or value >= 100 else 1 if value >= 10 else 2
            return f"{value:.{digits}f} {unit}"
    return f"{seconds:.2f} s"


def format_count(value: float) -> str:
    """A whole number with thousands separated."""
    return f"{value:,.0f}"


def format_rate(tokens_per_second: float) -> str:
    """Tokens a second, rounded to what a timing is worth (three figures)."""
    if tokens_per_second >= 1000:
        return f"{round(tokens_per_second, 3 - len(str(int(tokens_per_second)))):,.0f}"
    return f"{tokens_per_second:.3g}"
