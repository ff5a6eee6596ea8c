"""How the pitfalls page draws and tells: two texts, two laws or two messages side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from tinyllm.experiments.pitfalls import Bars, PitfallRow, Seen, Texts
from tinyllm.tokenizer import ALPHABET
from tinyllm.ui.figures import MARGIN
from tinyllm.ui.pitfall_words import WORDS
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, visible

STYLE = """<style>
.tinyllm-text { font-family: var(--st-code-font, monospace); font-size: 0.9rem;
  line-height: 1.55; height: 6.6rem; overflow-y: auto; overflow-wrap: anywhere;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent);
  border-radius: 4px; padding: 0.35rem 0.5rem; }
.tinyllm-text .given { opacity: 0.6; }
.tinyllm-text .apart { border-bottom: 2px dashed currentColor; font-weight: 700; }
</style>"""


@dataclass(slots=True)
class PitfallRecord:
    """The pitfalls measured so far, by name."""

    seen: dict[str, tuple[PitfallRow, Seen]] = field(default_factory=dict)

    def take(self, event: tuple[PitfallRow, Seen]) -> bool:
        """Take one pitfall in; each is worth drawing."""
        self.seen[event[0].name] = event
        return True


def title(name: str) -> str:
    """The pitfall's title."""
    return WORDS[name][0]


def option(name: str) -> str:
    """The pitfall's name as the address and the choice show it."""
    return name.replace("-", " ")


def text_html(prompt: str, tokens: Sequence[int], first_difference: int | None) -> str:
    """The prompt and the new tokens; from the first difference on they are marked."""
    apart = len(tokens) if first_difference is None else first_difference
    same = "".join(_shown(token) for token in tokens[:apart])
    other = "".join(_shown(token) for token in tokens[apart:])
    given = "".join(escape(visible(symbol)) for symbol in prompt)
    spans = f'<span class="given">{given}</span>{same}<span class="apart">{other}</span>'
    return f'{STYLE}<div class="tinyllm-text" tabindex="0">{spans}</div>'


def _shown(token: int) -> str:
    return escape(visible(ALPHABET[token]))


def bars_figure(bars: Bars) -> Figure:
    """The two results by label."""

    def series(heights: Sequence[float], name: str, colour: str, pattern: str) -> dict[str, Any]:
        marker: dict[str, Any] = {"color": colour}
        if pattern:
            marker = {
                "color": "$background",
                "line": {"width": 1.5, "color": colour},
                "pattern": {"shape": pattern, "fgcolor": colour, "bgcolor": "$background"},
            }
        return {
            "type": "bar",
            "name": name,
            "x": list(bars.labels),
            "y": list(heights),
            "marker": marker,
            "text": [f"{height:.3g}" for height in heights],
            "textposition": "outside",
            "cliponaxis": False,
            "hovertemplate": "%{x}: %{y:.4g}<extra></extra>",
        }

    top = max(*bars.wrong, *bars.right)
    layout = {
        "margin": MARGIN,
        "barmode": "group",
        "xaxis": {"type": "category"},
        "yaxis": {"range": [min(0, *bars.wrong, *bars.right) * 1.1, top * 1.2], "nticks": 4},
        "legend": {"orientation": "h", "x": 1, "y": 1.02, "xanchor": "right", "yanchor": "bottom"},
    }
    data = [
        series(bars.wrong, _("done wrong"), "$1", "x"),
        series(bars.right, _("right"), "$2", ""),
    ]
    return {"data": data, "layout": layout}


def bars_alt(row: PitfallRow) -> str:
    """The bars in words."""
    return _("{measure}: {wrong} done wrong, {right} right.").format(
        measure=row.measure, wrong=row.wrong, right=row.right
    )


def finding(name: str) -> str:
    """What goes wrong."""
    return WORDS[name][1]


def difference(texts: Texts) -> str:
    """Where two texts part."""
    place = texts.first_difference
    if place is None:
        return _("The two texts are the same.")
    return _("The texts part at new token {place}, from which on they are underlined.").format(
        place=place
    )
