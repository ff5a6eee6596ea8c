"""How long requests are: fixed, uniform, log-normal, or as observed.

A length is drawn with a generator that the caller seeds, so a figure can be had again.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import MOST_TOKENS, shown, whole_number

MOST_ROWS = 100_000
_Z_95 = 1.6448536269514722  # the standard normal's 95th percentile


@dataclass(frozen=True, slots=True)
class Uniform:
    """Any length from low to high; one length when they are equal."""

    low: int
    high: int

    def __post_init__(self) -> None:
        whole_number("the shortest length", self.low, 0, MOST_TOKENS)
        whole_number("the longest length", self.high, self.low, MOST_TOKENS)

    def draw(self, random: Random) -> int:
        return random.randint(self.low, self.high)

    @property
    def only(self) -> int | None:
        """The length when there is but one."""
        return self.low if self.low == self.high else None


def fixed(tokens: int) -> Uniform:
    """Every request as long as the other."""
    return Uniform(tokens, tokens)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Half of the requests below the median, one in twenty above p95, none above the cap."""

    median: int
    p95: int
    cap: int

    def __post_init__(self) -> None:
        whole_number("the median length", self.median, 1, MOST_TOKENS)
        whole_number("the 95th percentile", self.p95, self.median, MOST_TOKENS)
        whole_number("the cap", self.cap, self.p95, MOST_TOKENS)

    def draw(self, random: Random) -> int:
        deviation = math.log(self.p95 / self.median) / _Z_95
        return min(self.cap, max(1, round(self.median * math.exp(random.gauss(0, deviation)))))

    @property
    def only(self) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class Observed:
    """Lengths that were seen, each as likely as the other."""

    tokens: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.tokens) <= MOST_ROWS:
            raise MemoryPlanError(f"from 1 to {MOST_ROWS:,} lengths, not {len(self.tokens):,}")
        for value in self.tokens:
            whole_number("a length", value, 0, MOST_TOKENS)

    def draw(self, random: Random) -> int:
        return random.choice(self.tokens)

    @property
    def only(self) -> int | None:
        return self.tokens[0] if len(set(self.tokens)) == 1 else None


Lengths = Uniform | LogNormal | Observed


@dataclass(frozen=True, slots=True)
class Workload:
    """Prompts and outputs, and tokens that every prompt begins with (not counted in it)."""

    prompts: Lengths
    outputs: Lengths
    shared_prefix: int = 0

    def __post_init__(self) -> None:
        whole_number("shared_prefix", self.shared_prefix, 0, MOST_TOKENS)

    def draw(self, random: Random) -> int:
        """Tokens of one request at its end."""
        return self.shared_prefix + self.prompts.draw(random) + self.outputs.draw(random)

    @property
    def only(self) -> int | None:
        """The length of every request when they are all alike."""
        prompt, output = self.prompts.only, self.outputs.only
        return None if prompt is None or output is None else self.shared_prefix + prompt + output


_FORMS = {"fixed": ("tokens",), "uniform": ("low", "high"), "lognormal": ("median", "p95", "cap")}


def read_lengths(text: str, name: str = "lengths") -> Lengths:
    """Lengths written as fixed:512, uniform:256:1024 or lognormal:median:p95:cap."""
    form, *numbers = text.strip().lower().split(":")
    wanted = _FORMS.get(form)
    whole = all(number.isascii() and number.isdecimal() and len(number) < 15 for number in numbers)
    if wanted is None or len(numbers) != len(wanted) or not whole:
        known = " or ".join(":".join((form, *names)) for form, names in _FORMS.items())
        raise MemoryPlanError(f"{name} must be {known}, in whole tokens, not {shown(text)}")
    values = [int(number) for number in numbers]
    try:
        if form == "fixed":
            return fixed(*values)
        return Uniform(*values) if form == "uniform" else LogNormal(*values)
    except MemoryPlanError as error:
        raise MemoryPlanError(f"{name}: {error}") from None


def parse_lengths(text: str) -> tuple[Observed, Observed]:
    """Prompt and output lengths from CSV: two whole numbers a line, a line of names before them."""
    prompts, outputs = [], []
    for number, row, cells in _numbers(text):
        if len(cells) != 2:
            raise MemoryPlanError(
                f"line {number} must be two whole numbers, prompt and output, not {shown(row)}"
            )
        prompts.append(cells[0])
        outputs.append(cells[1])
    return Observed(tuple(prompts)), Observed(tuple(outputs))


def parse_totals(text: str) -> Observed:
    """Lengths from CSV: a line holds one, or a prompt's and an output's, which are added up."""
    totals = []
    for number, row, cells in _numbers(text):
        if len(cells) not in (1, 2):
            raise MemoryPlanError(
                f"line {number} must be one whole number, or a prompt's and an output's, "
                f"not {shown(row)}"
            )
        totals.append(sum(cells))
    return Observed(tuple(totals))


def _numbers(text: str) -> Iterator[tuple[int, str, list[int]]]:
    """Number, text and whole numbers of every line; none when one of its cells is no number.

    A first line of names is left out.
    """
    rows = [line for line in text.splitlines() if line.strip()]
    if len(rows) > MOST_ROWS + 1:
        raise MemoryPlanError(f"at most {MOST_ROWS:,} lines, not {len(rows):,}")
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row.replace(";", ",").replace("\t", ",").split(",")]
        if number == 1 and not any(cell.isdecimal() for cell in cells):
            continue
        # isdecimal also takes other scripts' digits, as int does.
        whole = all(cell.isdecimal() and len(cell) < 15 for cell in cells)
        yield number, row, [int(cell) for cell in cells] if whole else []
