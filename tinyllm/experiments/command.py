"""`python -m tinyllm bench NAME [--json]`: runs an experiment here and prints its rows."""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from threadpoolctl import threadpool_limits

from tinyllm.experiments import decode
from tinyllm.experiments.timing import Spread
from tinyllm.loading import MODELS, load_model, load_weights
from tinyllm.machine import this_machine

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench`."""
    parser.add_argument("name", choices=sorted(BENCHES), help="the experiment")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")


def run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    """Run the experiment with one BLAS thread. 0 when it ran: the verdicts are in the rows."""
    with threadpool_limits(1, "blas"):
        machine = this_machine()
        rows = list(BENCHES[arguments.name]())
    if arguments.json:
        result = {"name": arguments.name, "machine": asdict(machine), "rows": rows}
        say(json.dumps(result, indent=2))
    else:
        say(str(machine))
        say(table(rows))
    return 0


def bench_decode() -> Iterator[Row]:
    """Rows of bench decode: times, then ratios, then cached against uncached logits."""
    target, draft = load_model("target"), load_model("draft")
    weights = load_weights(MODELS / target.name, target.config)
    for figure in decode.speed(target, draft, weights):
        yield figure.row()
    for dtype, bound in decode.EQUALITY_BOUNDS.items():
        found = decode.equality(load_model("target", dtype))
        worst = Spread.of([max(found.differences)])
        tokens = "same tokens" if found.same_tokens else "OTHER TOKENS"
        name = f"cached against uncached, {dtype}, {tokens}"
        yield decode.Figure(name, "logit", worst, at_most=bound).row()


def table(rows: list[Row]) -> str:
    """Rows as aligned text: name, median, quartiles, and the bound with its verdict."""
    lines = []
    for row in rows:
        line = f"{row['name']:47} {row['median']:9.4g} {row['unit']:6}"
        line += f"[{row['low']:.4g} - {row['high']:.4g}]"
        if row["met"] is not None:
            bound = f">= {row['at_least']}" if row["at_least"] else f"<= {row['at_most']}"
            line += f"   {bound}: {'met' if row['met'] else 'NOT MET'}"
        lines.append(line)
    return "\n".join(lines)


BENCHES: dict[str, Callable[[], Iterator[Row]]] = {"decode": bench_decode}
