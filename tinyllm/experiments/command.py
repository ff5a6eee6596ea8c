"""`python -m tinyllm bench NAME [--json]`: runs an experiment here and prints its rows."""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from threadpoolctl import threadpool_limits

from tinyllm.experiments import decode
from tinyllm.loading import MODELS, load_model, load_weights
from tinyllm.machine import this_machine

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench`."""
    parser.add_argument("name", choices=sorted(BENCHES), help="the experiment")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")


def run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    """Run the experiment with one BLAS thread; 0 when every bar is met, else 1."""
    with threadpool_limits(1, "blas"):
        machine = this_machine()
        rows = list(BENCHES[arguments.name]())
    if arguments.json:
        result = {"name": arguments.name, "machine": asdict(machine), "rows": rows}
        say(json.dumps(result, indent=2))
    else:
        say(str(machine))
        say(table(rows))
    return int(any(row["met"] is False for row in rows))


def bench_decode() -> Iterator[Row]:
    """Rows of bench decode: a figure a call, then a ratio a bar."""
    target, draft = load_model("target"), load_model("draft")
    weights = load_weights(MODELS / target.name, target.config)
    for row in decode.decode(target, draft, weights):
        if isinstance(row, decode.CallTime):
            name, unit, spread = row.case, "ms", row.milliseconds
            least = most = met = None
        else:
            name, unit, spread = row.name, "ratio", row.ratio
            least, most, met = row.at_least, row.at_most, row.met
        yield {
            "name": name,
            "unit": unit,
            "median": spread.median,
            "low": spread.low,
            "high": spread.high,
            "turns": spread.count,
            "at_least": least,
            "at_most": most,
            "met": met,
        }


def table(rows: list[Row]) -> str:
    """Rows as aligned text: name, median, quartiles, and the bound with its verdict."""
    lines = []
    for row in rows:
        line = f"{row['name']:42} {row['median']:9.4g} {row['unit']:6}"
        line += f"[{row['low']:.4g} - {row['high']:.4g}]"
        if row["met"] is not None:
            bound = f">= {row['at_least']}" if row["at_least"] else f"<= {row['at_most']}"
            line += f"   {bound}: {'met' if row['met'] else 'NOT MET'}"
        lines.append(line)
    return "\n".join(lines)


BENCHES: dict[str, Callable[[], Iterator[Row]]] = {"decode": bench_decode}
