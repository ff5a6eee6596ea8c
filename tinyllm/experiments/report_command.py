"""`python -m tinyllm report [--out DIR]`: every experiment, then a page beside the article's."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from threadpoolctl import threadpool_limits
from tqdm import tqdm

from tinyllm.experiments.catalogue import reported
from tinyllm.experiments.documents import html, markdown
from tinyllm.experiments.report import Report, measure
from tinyllm.options import path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `report`."""
    add = parser.add_argument
    add("--out", type=path, default=Path("report"), metavar="DIR", help="folder for the files")
    add(
        "--only",
        nargs="+",
        choices=reported(),
        default=reported(),
        metavar="NAME",
        help="some experiments: " + ", ".join(reported()),
    )


def run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    """Measure and write report.html, report.md and report.json; 130 when stopped.

    What was measured by then is written all the same.
    """
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)  # now, not after minutes of measuring
    with threadpool_limits(1, "blas"):  # also for what the report says of the machine
        report = Report()
    with tqdm(file=sys.stderr, unit=" rows", disable=None) as bar:  # none where nobody watches
        try:
            for event in measure(arguments.only):
                report.take(event)
                bar.set_description(event.experiment, refresh=False)
                bar.update()
        except KeyboardInterrupt:
            report.stopped = True
    for name, text in (
        ("report.html", html(report)),
        ("report.md", markdown(report)),
        ("report.json", report.to_json()),
    ):
        (folder / name).write_text(text, "utf-8")
        say(f"{folder / name}")
    return 130 if report.stopped else 0
