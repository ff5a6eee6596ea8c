"""How the pitfalls page draws and tells: two texts, two laws or two messages side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from tinyllm.experiments.pitfalls import Bars, PitfallRow, Seen, Texts
from tinyllm.tokenizer import ALPHABET
from tinyllm.ui.figures import MARGIN, heading
from tinyllm.ui.pitfall_words import WORDS
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, visible

STYLE = """<style>
.tinyllm-pitfall { display: grid; grid-template-columns: 1fr 1fr; gap: 0.4rem 1rem; }
.tinyllm-pitfall .label { font-size: 0.8rem; opacity: 0.75; }
.tinyllm-pitfall .whole { grid-column: 1 / -1; }
.tinyllm-pitfall .result { font-family: var(--st-code-font, monospace); font-size: 0.88rem;
  overflow-wrap: anywhere; border-radius: 4px; padding: 0.25rem 0.5rem; min-width: 0;
  border: 1px solid color-mix(in srgb, currentColor 35%, transparent); }
.tinyllm-pitfall .wrong { border-style: dashed; border-width: 2px; }
.tinyllm-pitfall .text { max-height: 6.9rem; overflow-y: auto; line-height: 1.5; }
.tinyllm-pitfall .given { opacity: 0.6; }
.tinyllm-pitfall .apart { text-decoration: underline dashed; font-weight: 700; }
@media (max-width: 640px) { .tinyllm-pitfall { grid-template-columns: 1fr; } }
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


def results_html(row: PitfallRow, prompt: str, texts: Texts | None) -> str:
    """The two results side by side, with their texts where there are any, and the engine's word."""
    sides = []
    for name, kind, result in (
        (_("Done wrong"), "wrong", row.wrong),
        (_("Right"), "right", row.right),
    ):
        text = ""
        if texts is not None:
            tokens = texts.wrong if kind == "wrong" else texts.right
            shown = _text_html(prompt, tokens, texts.first_difference)
            text = f'<div class="result text {kind}" tabindex="0">{shown}</div>'
        box = f'<div class="result {kind}">{escape(result)}</div>'
        sides.append(f'<div><div class="label">{escape(name)}</div>{box}{text}</div>')
    label = f'<div class="label">{escape(_("What the engine says or does"))}</div>'
    engine = f'<div class="whole">{label}<div class="result">{escape(row.engine)}</div></div>'
    return f'{STYLE}<div class="tinyllm-pitfall">{"".join(sides)}{engine}</div>'


def _text_html(prompt: str, tokens: Sequence[int], first_difference: int | None) -> str:
    """The prompt and the new tokens; from the first difference on they are marked."""
    apart = len(tokens) if first_difference is None else first_difference
    same = "".join(_shown(token) for token in tokens[:apart])
    other = "".join(_shown(token) for token in tokens[apart:])
    given = "".join(escape(visible(symbol)) for symbol in prompt)
    return f'<span class="given">{given}</span>{same}<span class="apart">{other}</span>'


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
    annotations = [heading(escape(bars.what), 1)] if bars.what else []
    layout = {
        "margin": MARGIN,
        "barmode": "group",
        "annotations": annotations,
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


def findings(name: str, texts: Texts | None) -> tuple[str, ...]:
    """What goes wrong, and where two texts part, a sentence or two each."""
    place = None if texts is None else texts.first_difference
    if place is None:
        return (WORDS[name][1],)
    parts = _("The texts part at new token {place}; from there they are underlined.")
    return WORDS[name][1], parts.format(place=place)
