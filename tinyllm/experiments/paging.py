"""How much of the reserved memory stands empty: a slab for each request, or blocks as needed.

Counting alone, as for the article's figures: requests of drawn lengths, each at its end. A slab
is as long as the longest request may be; with blocks only the last one is partly empty.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache.blocks import LARGEST_BLOCK
from tinyllm.errors import SettingError
from tinyllm.experiments.settings import Settings
from tinyllm.memory.lengths import Lengths, LogNormal, Observed, Uniform, fixed, parse_totals

LONGEST = 2048  # tokens a slab has room for
REQUESTS = 1000
ARTICLE_LENGTHS = Uniform(50, 2047)
BLOCK_SIZES = range(1, LARGEST_BLOCK + 1)
DISTRIBUTIONS = ("uniform", "fixed", "log-normal", "yours")


@dataclass(frozen=True, slots=True)
class PagingConfig(Settings):
    """The requests, and the blocks that serve them."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {
        "block_size": (1, LARGEST_BLOCK),
        "shared": (0, 512),
        "shortest": (1, LONGEST),
        "longest": (1, LONGEST),
        "same": (1, LONGEST),
        "median": (1, LONGEST),
        "p95": (1, LONGEST),
        "seed": (0, 9999),
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {"lengths": DISTRIBUTIONS}

    block_size: int = 16  # tokens
    lengths: str = "uniform"
    shared: int = 128  # tokens of the prompt that requests of a kind have in common
    shortest: int = ARTICLE_LENGTHS.low  # uniform: both ends
    longest: int = ARTICLE_LENGTHS.high
    same: int = 1024  # fixed
    median: int = 400  # log-normal
    p95: int = 1800
    pasted: str = "350\n1200\n80\n640\n95\n1500\n210\n"  # yours: a length a line
    seed: int = 0

    def check(self) -> None:
        """The chosen distribution can be drawn from, and nothing in it outgrows a slab."""
        drawn = self.distribution
        if isinstance(drawn, Observed) and not 1 <= min(drawn.tokens) <= max(drawn.tokens):
            raise SettingError("a pasted length must be at least 1 token, not 0")
        if isinstance(drawn, Observed) and max(drawn.tokens) > LONGEST:
            raise SettingError(
                f"a pasted length must be at most {LONGEST} tokens, the size of a slab, not "
                f"{max(drawn.tokens)}"
            )

    @property
    def distribution(self) -> Lengths:
        """The lengths to draw from; MemoryPlanError says what does not make a distribution."""
        if self.lengths == "fixed":
            return fixed(self.same)
        if self.lengths == "log-normal":
            return LogNormal(self.median, self.p95, LONGEST)
        if self.lengths == "yours":
            return parse_totals(self.pasted)
        return Uniform(self.shortest, self.longest)


@dataclass(frozen=True, slots=True)
class WasteRow:
    """What one way of reserving takes for all requests together."""

    policy: str  # "preallocate" or "blocks"
    block_size: int  # tokens reserved at a time
    requests: int
    tokens: int  # held
    reserved: int  # tokens there is room for
    waste: float  # share of the room that stands empty


def draw(lengths: Lengths, requests: int = REQUESTS, seed: int = 0) -> NDArray[np.int64]:
    """Lengths of requests; those that were observed are taken as they are."""
    if isinstance(lengths, Observed):
        return np.array(lengths.tokens)
    random = Random(seed)
    return np.array([lengths.draw(random) for _ in range(requests)])


def rows(
    lengths: Lengths = ARTICLE_LENGTHS,
    requests: int = REQUESTS,
    longest: int = LONGEST,
    sizes: Iterable[int] = BLOCK_SIZES,
    seed: int = 0,
) -> Iterator[WasteRow]:
    """Slabs of `longest` tokens, then blocks of every size, for the same requests."""
    drawn = draw(lengths, requests, seed)
    yield _row("preallocate", longest, drawn)
    for size in sizes:
        yield _row("blocks", size, drawn)


def _row(policy: str, size: int, drawn: NDArray[np.int64]) -> WasteRow:
    reserved = int((-(-drawn // size)).sum()) * size
    tokens = int(drawn.sum())
    return WasteRow(policy, size, len(drawn), tokens, reserved, 1 - tokens / reserved)
