"""`python -m tinyllm COMMAND`: finds the command, and turns whatever goes wrong into one line."""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from tinyllm.errors import TinyllmError
from tinyllm.experiments import command as bench
from tinyllm.experiments import report_command as report
from tinyllm.memory import command as memory
from tinyllm.options import Parser
from tinyllm.speculative import command as generate
from tinyllm.training import command as train

COMMANDS = (
    ("train", train, "train a model"),
    ("generate", generate, "continue a prompt, plainly or by speculation"),
    ("memory", memory, "size a model's KV cache"),
    ("bench", bench, "measure something on this machine"),
    ("report", report, "measure everything, and set it beside the article's figures"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when done, 1 when the reader left, 130 when interrupted, and 2 when the
    input was wrong or the system refused (a full disk, a path without permission)."""
    parser = Parser(prog="python -m tinyllm", description=__doc__)
    name = parser.prog
    try:
        _prepare_streams()
        parsed = _declare(parser).parse_args(arguments)
        name = f"{parser.prog} {parsed.command}"
        code = int(parsed.run(parsed, print))
        sys.stdout.flush()  # a full disk shows here at the latest
        return code
    except SystemExit as told:  # --help, or an option that the parser refused
        return int(told.code or 0)
    except TinyllmError as error:
        return _refuse(f"{name}: {error}")
    except MemoryError:
        return _refuse(f"{name}: that needs more memory than there is: ask for less at once")
    except BrokenPipeError:  # the reader has left (`| head`): no more to say, nowhere to say it
        return 1
    except OSError as error:
        return _refuse(f"{name}: {error}")
    except KeyboardInterrupt:
        _refuse("stopped")
        return 130
    finally:
        _drop_unwritten()


def _declare(parser: Parser) -> Parser:
    """The parser with every command and its options."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command, what in COMMANDS:
        subparser = commands.add_parser(name, help=what, description=command.__doc__)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def _prepare_streams() -> None:
    """Let file names that are not UTF-8 be printed as they are, and no stream be missing.

    OSError when standard output is closed: there is nowhere to tell a result.
    """
    closed = sys.stdout is None
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:
            setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if closed:
        raise OSError("standard output is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")


def _refuse(sentence: str) -> int:
    """Say what is wrong, if standard error takes it."""
    with suppress(OSError):
        print(sentence, file=sys.stderr)
    return 2


def _drop_unwritten() -> None:
    """What a stream could not take must not fail once more, with a traceback, at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
