"""`python -m tinyllm COMMAND`: finds the command, and turns a user's error into one line."""

import argparse
import sys
from collections.abc import Sequence

from tinyllm.errors import TinyllmError
from tinyllm.training import command as train


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when done, 2 when the input was wrong, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tinyllm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    train_parser = commands.add_parser("train", help="train a model")
    train.add_arguments(train_parser)
    train_parser.set_defaults(run=train.run)
    parsed = parser.parse_args(arguments)
    try:
        return int(parsed.run(parsed, print))
    except TinyllmError as error:
        print(f"{parser.prog} {parsed.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
