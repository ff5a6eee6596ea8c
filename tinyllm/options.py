"""Options of the command line: what they take, and refusals that name the option and its range.

The functions are argparse types; argparse puts the option's name before what they say.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from reprlib import repr as shortened
from typing import NoReturn

from tinyllm.errors import TinyllmError
from tinyllm.loading import find_model


class Parser(argparse.ArgumentParser):
    """argparse, but a refusal is one line: the command, the option, what it must be."""

    def error(self, message: str) -> NoReturn:
        """Print the line and leave with exit code 2."""
        named = message.removeprefix("argument ")
        hint = "" if named != message else "; see --help"
        self.exit(2, f"{self.prog}: {named.replace(': must ', ' must ', 1)}{hint}\n")


def whole(low: int, high: int | None = None, step: int = 1) -> Callable[[str], int]:
    """A whole number from low to high, a multiple of step."""
    kind = "a whole number" if step == 1 else f"a multiple of {step}"
    wanted = f"{kind} at least {low}" if high is None else f"{kind} from {low} to {high}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise _refusal(wanted, shortened(text)) from None
        if number < low or (high is not None and number > high) or number % step:
            raise _refusal(wanted, text)
        return number

    return read


def whole_or(word: str, low: int, high: int) -> Callable[[str], int | str]:
    """A word, or a whole number from low to high."""
    number = whole(low, high)

    def read(text: str) -> int | str:
        try:
            return word if text == word else number(text)
        except argparse.ArgumentTypeError as refusal:
            raise argparse.ArgumentTypeError(
                str(refusal).replace(", not", f", or {word}, not", 1)
            ) from None

    return read


def real(low: float, high: float, *, above: bool = False) -> Callable[[str], float]:
    """A number from low to high; with `above`, low itself is left out."""
    wanted = (
        f"above {low:g} and at most {high:g}" if above else f"a number from {low:g} to {high:g}"
    )

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise _refusal(wanted, shortened(text)) from None
        if math.isnan(number) or not low <= number <= high or (above and number == low):
            raise _refusal(wanted, text)
        return number

    return read


def path(text: str) -> Path:
    """A path that is not empty: Path("") would be the current folder."""
    if not text:
        raise _refusal("a path", "''")
    return Path(text)


def _checked(check: Callable[[str], object]) -> Callable[[str], str]:
    """Any text that `check` does not refuse, as it is."""

    def read(text: str) -> str:
        try:
            check(text)
        except (TinyllmError, OSError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return text

    return read


def _refusal(wanted: str, shown: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"must be {wanted}, not {shown}")


model = _checked(find_model)  # the name of a shipped model, or a folder


def model_or(*names: str) -> Callable[[str], str]:
    """One of the names, or what `model` takes."""
    return _checked(lambda name: name in names or find_model(name))
