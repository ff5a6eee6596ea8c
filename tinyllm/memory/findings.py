"""What was found besides sizes, as plain values and as text: logs, conformance, commands.

Nothing is worked out or printed here.
"""

from dataclasses import asdict
from typing import Any

from tinyllm.memory import commands
from tinyllm.memory import conformance as right
from tinyllm.memory.assessment import assess
from tinyllm.memory.choice import Choice
from tinyllm.memory.explain import Explanation
from tinyllm.memory.subject import Subject

_ENGINES = ("logical", "vllm", "llamacpp", "sglang")


def explained(explanation: Explanation) -> dict[str, Any]:
    """Lines of a log with their meaning, and verdicts about them."""
    return {
        "lines": [asdict(line) for line in explanation.lines],
        "verdicts": [asdict(verdict) for verdict in explanation.verdicts],
    }


def explained_text(found: dict[str, Any]) -> str:
    """The same, a paragraph a line of the log."""
    if not found["lines"]:
        return "no line of this log speaks of memory in words of vLLM, SGLang or llama.cpp"
    lines = []
    for line in found["lines"]:
        lines += [f"line {line['number']}: {line['text']}", f"  {line['meaning']}"]
    for verdict in found["verdicts"]:
        numbers = ", ".join(str(number) for number in verdict["lines"])
        word = "agrees" if verdict["agrees"] else "DIFFERS"
        lines.append(f"{word} (line {numbers}): {verdict['text']}")
    return "\n".join(lines)


def conformance() -> dict[str, Any]:
    """Every preset by every engine, and public reports, beside their right values."""
    return {
        "models": [asdict(row) for row in right.rows()],
        "reports": [
            asdict(check) | {"agrees": check.agrees, "source": source}
            for check, source in right.reports()
        ],
    }


def conformance_table(found: dict[str, Any]) -> list[dict[str, str]]:
    """A row for each model: right and checked by engine, and the first remark."""
    table: dict[str, dict[str, str]] = {}
    for row in found["models"]:
        cells = table.setdefault(row["model"], {"model": row["model"]})
        cells[row["engine"]] = f"{row['right']}/{row['checked']}" if row["checked"] else "-"
        differs = row["right"] != row["checked"]
        if row["remark"] and (differs or "remark" not in cells):
            cells["remark"] = f"{row['engine']}: {row['remark']}"
    heads = ("model", *_ENGINES, "remark")
    return [{head: cells.get(head, "") for head in heads} for cells in table.values()]


def conformance_totals(found: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Right and checked figures of each engine, and of the reports."""
    totals = {}
    for engine in _ENGINES:
        rows = [row for row in found["models"] if row["engine"] == engine]
        totals[engine] = sum(row["right"] for row in rows), sum(row["checked"] for row in rows)
    agreeing = [report["agrees"] for report in found["reports"]]
    return totals | {"reports": (sum(agreeing), len(agreeing))}


def conformance_text(found: dict[str, Any]) -> str:
    """The table for a terminal, with the totals below it."""
    heads = ("model", *_ENGINES, "remark")
    rows = [heads, *(tuple(row[head] for head in heads) for row in conformance_table(found))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    totals = conformance_totals(found)
    lines.append("")
    lines += [
        f"{name}: {right:,} of {checked:,} right" for name, (right, checked) in totals.items()
    ]
    return "\n".join(lines)


def command(choice: Choice, subject: Subject) -> dict[str, Any]:
    """The command that starts a server, its flags explained."""
    found = commands.command(assess(choice, subject))
    return asdict(found) | {"text": found.text}
