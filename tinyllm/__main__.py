"""`python -m tinyllm COMMAND`: finds the command, and turns a user's error into one line."""

import argparse
import os
import sys
from collections.abc import Sequence

from tinyllm.errors import TinyllmError
from tinyllm.experiments import command as bench
from tinyllm.experiments import report_command as report
from tinyllm.memory import command as memory
from tinyllm.speculative import command as generate
from tinyllm.training import command as train


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when done, 2 when the input was wrong, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tinyllm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command, what in (
        ("train", train, "train a model"),
        ("generate", generate, "continue a prompt, plainly or by speculation"),
        ("memory", memory, "size a model's KV cache"),
        ("bench", bench, "measure something on this machine"),
        ("report", report, "measure everything, and set it beside the article's figures"),
    ):
        subparser = commands.add_parser(name, help=what, description=command.__doc__)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    parsed = parser.parse_args(arguments)
    try:
        return int(parsed.run(parsed, print))
    except TinyllmError as error:
        print(f"{parser.prog} {parsed.command}: {error}", file=sys.stderr)
        return 2
    except MemoryError:
        print(
            f"{parser.prog} {parsed.command}: that needs more memory than there is: "
            "ask for less at once",
            file=sys.stderr,
        )
        return 2
    except BrokenPipeError:  # the reader has left (`| head`): no more to say, nowhere to say it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
