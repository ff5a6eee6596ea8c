"""How the exactness page draws and tells: the areas of p and q, and samples that converge."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyllm.experiments.exactness import CHECKPOINTS, DrawsRecord, DrawsRow, Laws
from tinyllm.ui.figures import MARGIN, heading
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, format_count, visible

TOKENS = 13  # shown by themselves
UNLIKELY = 0.001  # of a p-value that speaks against the law


def areas_figure(laws: Laws) -> Figure:
    """One bar a token: what p and q share, and on top what either has more.

    Up to the solid part a proposal is accepted. The top is refused where q is larger, and drawn
    after a refusal where p is.
    """
    order = np.argsort(-np.maximum(laws.p, laws.q), kind="stable")
    own, others = order[:TOKENS], order[TOKENS:]
    labels = [visible(laws.tokenizer.piece(token)) for token in own.tolist()] + [_("others")]
    names = [
        _("{text} (token {id})").format(text=text, id=token)
        for text, token in zip(labels, own.tolist(), strict=False)
    ] + labels[-1:]
    places = list(range(len(labels)))  # two tokens may look alike

    def bar(area: np.ndarray[Any, Any], name: str, pattern: str, colour: str) -> dict[str, Any]:
        heights = [*area[own].tolist(), float(area[others].sum())]
        p = [*laws.p[own].tolist(), float(laws.p[others].sum())]
        q = [*laws.q[own].tolist(), float(laws.q[others].sum())]
        marker: dict[str, Any] = {"color": colour, "line": {"width": 1, "color": colour}}
        if pattern:
            marker["color"] = "$background"
            marker["pattern"] = {"shape": pattern, "fgcolor": colour, "bgcolor": "$background"}
        return {
            "type": "bar",
            "name": name,
            "x": places,
            "y": heights,
            "marker": marker,
            "customdata": list(zip(p, q, names, strict=True)),
            "hovertemplate": _(
                "%{customdata[2]}: p = %{customdata[0]:.4f}, q = %{customdata[1]:.4f}<br>"
                "here %{y:.4f}<extra></extra>"
            ),
        }

    data = [
        bar(laws.accepted, _("accepted: min(p, q)"), "", "$2"),
        bar(laws.refused, _("refused: q − p"), "x", "$1"),
        bar(laws.redrawn, _("drawn instead: p − q"), "/", "$0"),
    ]
    layout = {
        "margin": MARGIN,
        "barmode": "stack",
        "bargap": 0.25,
        "xaxis": {
            "tickvals": places,
            "ticktext": labels,
            "title": {"text": _("next token")},
            "tickangle": 0 if max(map(len, labels[:-1])) == 1 else -40,
        },
        "yaxis": {"rangemode": "tozero", "nticks": 5, "tickformat": ".0%"},
        "legend": {"x": 0.99, "y": 0.98, "xanchor": "right", "yanchor": "top"},
        "annotations": [heading(_("What becomes of a proposal, by token"), 1)],
    }
    return {"data": data, "layout": layout}


def convergence_figure(rows: Sequence[DrawsRow]) -> Figure:
    """Distance to p against draws, on two logarithmic axes, with the band of sampling noise."""
    draws = [row.draws for row in rows]
    band = {
        "type": "scatter",
        "mode": "lines",
        "name": _("95 % of direct samples"),
        "x": [*draws, *reversed(draws)],
        "y": [_positive(row.noise_high) for row in rows]
        + [_positive(row.noise_low) for row in reversed(rows)],
        "fill": "toself",
        "fillcolor": "$4/0.25",
        "line": {"width": 0},
        "hoverinfo": "skip",
    }

    def series(field: str, name: str, colour: str, dash: str, symbol: str) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": draws,
            "y": [_positive(getattr(row, field)) for row in rows],
            "line": {"color": colour, "width": 2.5, "dash": dash},
            "marker": {"symbol": symbol, "size": 8, "color": colour},
            "hovertemplate": _("%{x:,} draws: distance %{y:.4f}<extra></extra>"),
        }

    data = [
        series("tvd_draft_only", _("the drafter alone"), "$1", "dot", "x"),
        series("tvd_direct", _("the target alone"), "$0", "dash", "diamond-open"),
        series("tvd_speculative", _("speculative"), "$2", "solid", "circle"),
    ]
    # Room below the curves for the legend: most of a decade.
    heights = [height for one in (band, *data) for height in one["y"] if height]
    bottom, top = np.log10([min(heights, default=0.01), max(heights, default=1.0)]).tolist()
    ticks = [one for one in CHECKPOINTS if str(one)[0] == "1"] + [CHECKPOINTS[-1]]
    layout = {
        "margin": MARGIN,
        "xaxis": {
            "type": "log",
            "range": [2.93, 5.4],
            "tickvals": ticks,
            "ticktext": [format_count(one) for one in ticks],
            "title": {"text": _("draws")},
        },
        "yaxis": {"type": "log", "dtick": 1, "range": [bottom - 0.9, top + 0.2]},
        "legend": {"x": 0.01, "y": 0.02, "xanchor": "left", "yanchor": "bottom"},
        "annotations": [heading(_("Distance to p (total variation)"), 1)],
    }
    return {"data": [band, *data], "layout": layout}


def areas_alt(laws: Laws) -> str:
    """The bars in words."""
    top = int(laws.p.argmax())
    return _(
        "Bars of p and q by token. The likeliest under the target is {token} with p {p:.3f} and "
        "q {q:.3f}; {accepted:.1%} of the area is shared."
    ).format(
        token=visible(laws.tokenizer.piece(top)),
        p=laws.p[top],
        q=laws.q[top],
        accepted=laws.accepted.sum(),
    )


def convergence_alt(row: DrawsRow) -> str:
    """The chart of distances in words."""
    return _(
        "Distance to p against draws. After {draws} draws it is {speculative:.4f} speculatively, "
        "{direct:.4f} from the target alone and {draft:.4f} from the drafter alone; samples of "
        "p itself lie between {low:.4f} and {high:.4f}."
    ).format(
        draws=format_count(row.draws),
        speculative=row.tvd_speculative,
        direct=row.tvd_direct,
        draft=row.tvd_draft_only,
        low=row.noise_low,
        high=row.noise_high,
    )


def finding(record: DrawsRecord) -> str:
    """What the sample says of the law."""
    row = record.rows[-1]
    words = {
        "draws": format_count(row.draws),
        "accepted": row.accepted,
        "sum_min": row.sum_min,
        "tvd": row.tvd_speculative,
        "noise": row.noise,
        "draft": row.tvd_draft_only,
        "p": 1.0 if row.p_value is None else row.p_value,
    }
    if row.p_value is None:
        return _(
            "With one possible token there is nothing to draw: whatever the drafter proposes, the "
            "target's token comes out."
        )
    if row.p_value < UNLIKELY:
        sentence = _(
            "This sample of {draws} strays from p as few do: a chi-square test gives {p:.2g}. "
            "Other seeds show whether that was chance."
        )
    elif row.sum_min > 1 - UNLIKELY:
        sentence = _(
            "Drafter and target agree here: {accepted:.1%} of the proposals are accepted, and "
            "the sample is {tvd:.4f} away from p, as far as {draws} draws stray by chance "
            "({noise:.4f})."
        )
    else:
        sentence = _(
            "{accepted:.1%} of {draws} proposals were accepted; Σ min(p, q) is {sum_min:.1%}. "
            "What was emitted is {tvd:.4f} away from p, where chance alone makes {noise:.4f} "
            "(chi-square p-value {p:.2f}). The proposals by themselves are {draft:.3f} away."
        )
    return sentence.format(**words)


def formula(laws: Laws, row: DrawsRow) -> tuple[str, ...]:
    """The proof in one line, and the two areas with their numbers."""
    return (
        r"\underbrace{q(x) \min(1, p(x)/q(x))}_{\text{accepted}} + "
        r"\underbrace{\max(0, p(x) - q(x))}_{\text{drawn after a refusal}} = p(x)",
        rf"\alpha = \sum_x \min(p(x), q(x)) = {laws.accepted.sum():.4f}"
        rf"\quad \text{{measured: }} {row.accepted:.4f}",
        r"\mathrm{E}\,\mathrm{TVD} = \tfrac{1}{2} \sum_x \mathrm{E}\,|\hat p(x) - p(x)| "
        rf"= {row.noise:.5f} \approx \tfrac{{1}}{{2}} \sum_x "
        rf"\sqrt{{\tfrac{{2\,p(x)(1 - p(x))}}{{\pi n}}}} \quad (n = {row.draws:,})",
    )


def _positive(value: float) -> float | None:
    """A logarithmic axis has no place for 0."""
    return value if value > 0 else None
