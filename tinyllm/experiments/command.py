"""`python -m tinyllm bench NAME [--json]`: runs an experiment here and prints its rows."""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial

from threadpoolctl import threadpool_limits

from tinyllm.errors import SettingError
from tinyllm.experiments import pair
from tinyllm.experiments.catalogue import EXPERIMENTS
from tinyllm.experiments.drafters import TARGETS
from tinyllm.experiments.rows import Row, text_lines
from tinyllm.machine import this_machine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench`."""
    shown = [f"{name} ({experiment.shows})" for name, experiment in EXPERIMENTS.items()]
    add = parser.add_argument
    add("name", choices=list(EXPERIMENTS), metavar="NAME", help="one of " + "; ".join(shown))
    pairs = list(TARGETS)
    add("--pair", choices=pairs, help="with speculative: this target and its drafters, to bounds")
    add("--json", action="store_true", help="one JSON object instead of a table")


def _pair_rows(target: str) -> Iterator[Row]:
    return (figure.row() for figure in pair.rows(target))


def run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    """Run the experiment with one BLAS thread. 0 when it ran: the verdicts are in the rows.

    130 when it was stopped; the rows measured by then are told all the same.
    """
    experiment = EXPERIMENTS[arguments.name]
    if arguments.pair is not None:
        if experiment.name != "speculative":
            raise SettingError("--pair goes with speculative, which compares a target's drafters")
        experiment = replace(experiment, rows=partial(_pair_rows, arguments.pair))
    rows: list[Row] = []
    with threadpool_limits(1, "blas"):
        machine = this_machine()
        try:
            if not arguments.json:
                say(str(machine))
                for line in text_lines(experiment.rows()):
                    say(line)
                return 0
            rows.extend(experiment.rows())  # keeps what came before an interruption
            code = 0
        except KeyboardInterrupt:
            code = 130
    if arguments.json:
        result = {"name": experiment.name, "machine": asdict(machine), "rows": rows}
        say(json.dumps(result, indent=2, allow_nan=False))
    return code
