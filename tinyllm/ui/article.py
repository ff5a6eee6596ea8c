"""How the article page draws and tells: ratios, tiles, the table, and files to take away."""

from collections.abc import Mapping, Sequence
from functools import cache
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from tinyllm.experiments import documents as written
from tinyllm.experiments.article import Article, Beside
from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.report import STORED, Report, ReportConfig, shown
from tinyllm.ui import widgets
from tinyllm.ui.figures import MARGIN, heading
from tinyllm.ui.plot import Figure
from tinyllm.ui.state import Play
from tinyllm.ui.text import _

_NEAR = 0.03  # ratios within 3 % of one are called the same
_KINDS = (  # units, name, colour, symbol
    (("B", "MFLOP"), _("bytes and operations"), "$2", "square"),
    (("s",), _("times"), "$0", "circle"),
    (("",), _("counts, rates and differences"), "$1", "diamond"),
)


@cache
def stored() -> Report:
    """The run that comes with the app, for the first picture."""
    return Report.load(STORED)


def as_play(report: Report) -> Play[Report]:
    """A finished report as a run that has ended."""
    play: Play[Report] = Play(ReportConfig(), (), report)
    play.ended = True
    return play


def _experiment() -> Any:
    text = _("Run measures these anew; all of them take a minute or two.")
    return widgets.menu("experiment", _("Experiment"), text, ReportConfig)


def page_widgets(_model: ModelChoice) -> widgets.Widgets:
    """The page's controls by field; no model is chosen."""
    return {"experiment": _experiment}


def ratio_figure(found: Sequence[Beside]) -> Figure:
    """A point for each figure: ours / the article's, on a logarithmic axis, by experiment."""
    data = []
    for units, name, colour, symbol in _KINDS:
        items = [item for item in found if item.ratio and item.figure.unit in units]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": [item.ratio for item in items],
                "y": [item.figure.experiment for item in items],
                "text": ["<br>".join(_in_words(item)) for item in items],
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {"color": f"{colour}/0.7", "symbol": symbol, "size": 9},
            }
        )
    layout = {
        "margin": MARGIN,
        "xaxis": {"type": "log", "dtick": 1},
        "yaxis": {"type": "category", "autorange": "reversed"},
        "legend": {"orientation": "h", "x": 0, "y": -0.14, "yanchor": "top"},
        "annotations": [heading(_("Ours / the article's: 1 is the same"), 1)],
        "shapes": [
            {
                "type": "line",
                "x0": 1,
                "x1": 1,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"color": "$text", "width": 1.5, "dash": "dash"},
            }
        ],
    }
    return {"data": data, "layout": layout}


def _in_words(item: Beside) -> tuple[str, str, str]:
    what, theirs, ours, ratio = shown(item)
    both = _("article {theirs}, ours {ours}").format(theirs=theirs, ours=ours)
    return what, both, _("ratio {ratio}").format(ratio=ratio)


def _ratios(found: Sequence[Beside], *units: str) -> list[float]:
    return [item.ratio for item in found if item.ratio and item.figure.unit in units]


def _near(ratios: Sequence[float]) -> int:
    return sum(abs(ratio - 1) <= _NEAR for ratio in ratios)


def ratio_chart(found: Sequence[Beside]) -> str:
    """The chart in words."""
    return _("{measured} of {count} figures measured here, as ratios to the article's.").format(
        measured=sum(item.ours is not None for item in found), count=len(found)
    )


def tiles(found: Sequence[Beside]) -> None:
    """How many figures, how many of the countable ones are the same, and the times."""
    measured = sum(item.ours is not None for item in found)
    st.metric(_("Figures measured"), f"{measured} / {len(found)}")
    counted, times = _ratios(found, "B", "MFLOP"), _ratios(found, "s")
    same = f"{_near(counted)} / {len(counted)}" if counted else "-"
    st.metric(_("Bytes, operations the same"), same, help=_("To within 3 %."))
    st.metric(
        _("Our times, of theirs"),
        f"{median(times):.0%}" if times else "-",
        help=_("The median of all ratios of times."),
    )


def finding(found: Sequence[Beside]) -> str:
    """What to notice, with the numbers of this report."""
    if all(item.ours is None for item in found):
        return _("Nothing is measured yet; the article's figures stand in the table.")
    counted, times = _ratios(found, "B", "MFLOP"), _ratios(found, "s")
    if counted and times:
        return _(
            "{same} of {counted} byte and operation counts are the article's to within 3 %, "
            "for they do not depend on the machine. The times are {share:.0%} of its times, "
            "median: the same ideas, fewer calls of numpy around the products."
        ).format(same=_near(counted), counted=len(counted), share=median(times))
    if times:
        return _("The times here are {share:.0%} of the article's, median of {count}.").format(
            share=median(times), count=len(times)
        )
    rest = _ratios(found, "B", "MFLOP", "")
    return _(
        "{same} of {count} figures are the article's to within 3 %; the table says why others "
        "are not."
    ).format(same=_near(rest), count=len(rest))


def figure_table(found: Sequence[Beside]) -> None:
    """Every figure beside ours."""
    names = (_("figure"), _("article"), _("ours (quartiles)"), _("ours / article"))
    rows: list[Mapping[str, str]] = [
        {_("experiment"): item.figure.experiment}
        | dict(zip(names, shown(item), strict=True))
        | {_("why they differ"): (item.figure.why or "") if _differs(item) else ""}
        for item in found
    ]
    st.dataframe(pd.DataFrame(rows), height=330, hide_index=True)


def _differs(item: Beside) -> bool:
    theirs = item.figure.value
    if item.ratio is None:
        return item.ours is not None and item.ours != theirs
    return abs(item.ratio - 1) > _NEAR


def when(play: Play[Report]) -> None:
    """Where the figures come from: the stored run, or one on this machine."""
    report = play.result
    if play.stopped:
        st.caption(_("Stopped. Run begins again at the start."))
    elif play.running:
        st.caption(_("Measuring in turn ..."))
    elif report is stored():
        st.caption(
            _("A stored run of {date}, on {machine}. Run measures here and now.").format(
                date=report.date, machine=report.machine
            )
        )
    else:
        st.caption(
            _("Measured from {date} on. {machine}.").format(
                date=report.date, machine=report.machine
            )
        )


def documents(report: Report) -> None:
    """The whole report to take away."""
    with st.container(horizontal=True, gap="small"):
        for label, text, name, mime in (
            (_("Report as HTML"), written.html(report), "report.html", "text/html"),
            (_("Report as Markdown"), written.markdown(report), "report.md", "text/markdown"),
        ):
            st.download_button(
                label, text, f"tinyllm-{name}", mime, on_click="ignore", key=f"_{name}"
            )


def source(published: Article) -> dict[str, str]:
    """The article's title and machine."""
    return {"title": published.title, "machine": published.machine}
