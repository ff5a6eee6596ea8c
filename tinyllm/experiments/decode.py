"""bench decode: one step of the engine against the plain engine, and the calls speculation makes.

All cases are timed in turn, block by block, so that a machine that slows down slows them all;
a ratio is the median of the ratios within a turn. Knows nothing of what is generated.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter

from tinyllm.experiments.prompts import validation_text
from tinyllm.experiments.reference import PlainCache, plain_forward
from tinyllm.experiments.timing import Spread
from tinyllm.layers import Array
from tinyllm.model import Transformer

CACHED = 100  # tokens in the cache before a step
PREFILL = 256
# Calls in a block: as many as a generation makes one after the other, few where one is long.
STEPS_PER_BLOCK, PREFILLS_PER_BLOCK = 20, 1


@dataclass(frozen=True, slots=True)
class CallTime:
    """Milliseconds of one call."""

    case: str
    milliseconds: Spread


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio of two cases, with the bound it must keep."""

    name: str
    ratio: Spread
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool:
        """Whether the median keeps the bound."""
        if self.at_least is not None and self.ratio.median < self.at_least:
            return False
        return self.at_most is None or self.ratio.median <= self.at_most


@dataclass(frozen=True, slots=True)
class _Case:
    call: Callable[[], object]
    calls: int


def decode(
    target: Transformer, draft: Transformer, weights: Mapping[str, Array], turns: int = 40
) -> Iterator[CallTime | Bar]:
    """Times of the target's and the draft's calls, then the bars they must keep.

    `weights` are the target's as stored, for the plain engine.
    """
    fed = target.tokenizer.encode(validation_text()[: max(CACHED, PREFILL) + 16])
    cases = {
        "plain step": _plain(target, weights, fed, CACHED, 1),
        "step": _engine(target, fed, CACHED, 1),
        "2 rows": _engine(target, fed, CACHED, 2),
        "5 rows": _engine(target, fed, CACHED, 5),
        "9 rows": _engine(target, fed, CACHED, 9),
        "draft step": _engine(draft, fed, CACHED, 1),
        "plain prefill": _plain(target, weights, fed, 0, PREFILL),
        "prefill": _engine(target, fed, 0, PREFILL),
    }
    seconds = time_in_turn(cases, turns)
    for name, times in seconds.items():
        yield CallTime(name, Spread.of(1000 * s for s in times))

    def ratio(above: str, below: str) -> Spread:
        pairs = zip(seconds[above], seconds[below], strict=True)
        return Spread.of(a / b for a, b in pairs)

    yield Bar("step: times faster than plain", ratio("plain step", "step"), at_least=4.5)
    yield Bar("5 rows: steps", ratio("5 rows", "step"), at_most=2.1)
    yield Bar("draft step: steps", ratio("draft step", "step"), at_most=0.25)
    yield Bar(
        "prefill of 256: times faster than plain", ratio("plain prefill", "prefill"), at_least=6.0
    )


def time_in_turn(cases: Mapping[str, _Case], turns: int) -> dict[str, list[float]]:
    """Seconds a call, one figure per case and turn; a first turn is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(turns + 1):
        for name, case in cases.items():
            start = perf_counter()
            for _ in range(case.calls):
                case.call()
            spent = (perf_counter() - start) / case.calls
            if turn:
                seconds[name].append(spent)
    return seconds


def _engine(model: Transformer, fed: list[int], cached: int, rows: int) -> _Case:
    """A call with `rows` new tokens behind `cached` ones, and the rewind that undoes it."""
    cache = model.new_cache()
    if cached:
        model.forward(fed[:cached], cache)
    new = fed[cached : cached + rows]

    def call() -> None:
        model.forward(new, cache)
        cache.truncate(cached)

    return _Case(call, PREFILLS_PER_BLOCK if rows == PREFILL else STEPS_PER_BLOCK)


def _plain(
    target: Transformer, weights: Mapping[str, Array], fed: list[int], cached: int, rows: int
) -> _Case:
    """The same call of the plain engine."""
    cache = PlainCache(target.config, target.config.context_length)
    if cached:
        plain_forward(weights, target.config, fed[:cached], cache)
    new = fed[cached : cached + rows]

    def call() -> None:
        plain_forward(weights, target.config, new, cache)
        cache.n = cached

    return _Case(call, PREFILLS_PER_BLOCK if rows == PREFILL else STEPS_PER_BLOCK)
