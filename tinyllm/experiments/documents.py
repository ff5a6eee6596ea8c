"""A report as Markdown, or as one HTML file that needs nothing else.

Both hold the same: the two machines, every figure of the article beside ours with a sentence
where they differ by more than the machine explains, then every row of every experiment.
"""

from collections.abc import Sequence
from html import escape

from tinyllm.experiments.article import article
from tinyllm.experiments.catalogue import EXPERIMENTS
from tinyllm.experiments.report import Report, shown
from tinyllm.experiments.rows import Row, text_cells
from tinyllm.quantities import format_seconds

_HEADING = ("figure", "article", "ours (quartiles)", "ours / article")
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.2rem 0.9rem 0.2rem 0; border-bottom: 1px solid #8884; }
.wide { overflow-x: auto; }
.note { opacity: 0.75; }
"""


def markdown(report: Report) -> str:
    """The report as Markdown."""
    lines = ["# tinyllm: the article's figures and ours", ""]
    lines += [f"- {name}: {value}" for name, value in _facts(report)]
    for name, rows in report.rows.items():
        lines += ["", f"## {name}", "", _clause(report, name), ""]
        compared, reasons = _compared(report, name)
        if compared:
            lines += [*_markdown_table(_HEADING, compared), ""]
        lines += [f"{reason}\n" for reason in reasons]
        for heading, cells in _tables(rows):
            lines += [*_markdown_table(heading, cells), ""]
    return "\n".join(lines).rstrip() + "\n"


def html(report: Report) -> str:
    """The report as one self-contained HTML file."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>tinyllm report, {escape(report.date)}</title><style>{_STYLE}</style>",
        "<h1>The article's figures and ours</h1><ul>",
        *(f"<li>{escape(name)}: {escape(value)}" for name, value in _facts(report)),
        "</ul>",
    ]
    for name, rows in report.rows.items():
        parts += [f"<h2>{escape(name)}</h2><p>{escape(_clause(report, name))}"]
        compared, reasons = _compared(report, name)
        if compared:
            parts.append(_html_table(_HEADING, compared))
        parts += [f"<p class=note>{escape(reason)}" for reason in reasons]
        parts.append("<details><summary>Every row measured</summary>")
        parts += [_html_table(heading, cells) for heading, cells in _tables(rows)]
        parts.append("</details>")
    return "\n".join(parts) + "\n"


def _facts(report: Report) -> list[tuple[str, str]]:
    total = format_seconds(sum(report.seconds.values()))
    end = "; stopped before its end" if report.stopped else ""
    return [
        ("article", article().title),
        ("its machine", article().machine),
        ("this machine", report.machine),
        ("measured", f"{report.date}, in {total}{end}"),
    ]


def _clause(report: Report, name: str) -> str:
    return f"{EXPERIMENTS[name].shows}; measured in {format_seconds(report.seconds[name])}."


def _compared(report: Report, name: str) -> tuple[list[Sequence[str]], list[str]]:
    """The experiment's lines of the comparison, and the reasons given, each once."""
    items = [item for item in report.comparison if item.figure.experiment == name]
    reasons = dict.fromkeys(item.figure.why for item in items if item.figure.why)
    return [shown(item) for item in items], list(reasons)


def _tables(rows: Sequence[Row]) -> list[tuple[list[str], list[Sequence[str]]]]:
    """Rows of the same names together, as heading and cells."""
    tables: dict[tuple[str, ...], list[Sequence[str]]] = {}
    for row in rows:
        cells = text_cells(row)
        tables.setdefault(tuple(cells), []).append(list(cells.values()))
    return [(list(heading), cells) for heading, cells in tables.items()]


def _markdown_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return (
            "| "
            + " | ".join(cell.replace("|", "\\|").replace("\n", "\\n") for cell in cells)
            + " |"
        )

    return [line(heading), line(["---"] * len(heading)), *map(line, rows)]


def _html_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(cells, "td") for cells in rows)
    return f"<div class=wide><table>{line(heading, 'th')}{body}</table></div>"
