"""bench decode: one step of the engine against the plain engine, and the calls speculation makes.

All cases are timed in turn, block by block, so that a machine that slows down slows them all;
a ratio is the median of the ratios within a turn. Cached and uncached decoding are compared
too. Draws and prints nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tinyllm.experiments.prompts import validation_text
from tinyllm.experiments.reference import PlainCache, plain_forward
from tinyllm.experiments.rows import flat
from tinyllm.experiments.timing import Case, Spread, in_turn
from tinyllm.generation import generate
from tinyllm.layers import Array
from tinyllm.model import Transformer

CACHED = 100  # tokens in the cache before a step
PREFILL = 256
# Calls in a block: as many as a generation makes one after the other, few where one is long.
STEPS_PER_BLOCK, PREFILLS_PER_BLOCK = 20, 1
EQUALITY_PROMPT, EQUALITY_TOKENS = "def __init__(self,", 96
EQUALITY_BOUNDS = {"float32": 5e-6, "float64": 1e-12}  # largest difference of two logits


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure, and the bound it is held to, if any."""

    name: str
    unit: str  # "ms", "ratio" or "logit"
    spread: Spread
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the median keeps the bound; None without one."""
        if self.at_least is not None:
            return bool(self.spread.median >= self.at_least)
        return None if self.at_most is None else bool(self.spread.median <= self.at_most)

    def row(self) -> dict[str, Any]:
        """As one flat object."""
        return flat(self) | {"met": self.met}


def rows(target: Transformer, draft: Transformer, weights: Mapping[str, Array]) -> Iterator[Figure]:
    """Times, then ratios, then cached against uncached logits in every dtype that has a bound."""
    yield from speed(target, draft, weights)
    for dtype, bound in EQUALITY_BOUNDS.items():
        found = equality(Transformer(target.config, weights, dtype, target.name))
        worst = Spread.of([max(found.differences)])
        tokens = "same tokens" if found.same_tokens else "OTHER TOKENS"
        name = f"cached against uncached, {dtype}, {tokens}"
        yield Figure(name, "logit", worst, at_most=bound)


def speed(
    target: Transformer, draft: Transformer, weights: Mapping[str, Array], turns: int = 40
) -> Iterator[Figure]:
    """Times of the target's and the draft's calls, then the ratios that have a bound.

    `weights` are the target's as stored, for the plain engine.
    """
    fed = target.tokenizer.encode(validation_text()[: max(CACHED, PREFILL) + 16])
    cases = {
        "plain step": _plain(target, weights, fed, CACHED, 1),
        "step": engine_call(target, fed, CACHED, 1),
        "2 rows": engine_call(target, fed, CACHED, 2),
        "5 rows": engine_call(target, fed, CACHED, 5),
        "9 rows": engine_call(target, fed, CACHED, 9),
        "draft step": engine_call(draft, fed, CACHED, 1),
        "plain prefill": _plain(target, weights, fed, 0, PREFILL),
        "prefill": engine_call(target, fed, 0, PREFILL),
    }
    seconds = in_turn(cases, turns, warm_up=1)
    for name, times in seconds.items():
        yield Figure(name, "ms", Spread.of(1000 * s for s in times))

    def ratio(above: str, below: str) -> Spread:
        pairs = zip(seconds[above], seconds[below], strict=True)
        return Spread.of(a / b for a, b in pairs)

    times_faster = "times faster than plain"
    yield Figure(f"step: {times_faster}", "ratio", ratio("plain step", "step"), at_least=4.5)
    yield Figure("5 rows: steps", "ratio", ratio("5 rows", "step"), at_most=2.1)
    yield Figure("draft step: steps", "ratio", ratio("draft step", "step"), at_most=0.25)
    prefill = ratio("plain prefill", "prefill")
    yield Figure(f"prefill of {PREFILL}: {times_faster}", "ratio", prefill, at_least=6.0)


@dataclass(frozen=True, slots=True)
class Equality:
    """Cached greedy decoding of EQUALITY_PROMPT beside recomputing everything at each token."""

    same_tokens: bool
    differences: tuple[float, ...]  # the largest of a step's V logits, step by step


def equality(model: Transformer) -> Equality:
    """EQUALITY_TOKENS steps of the engine, in the model's dtype."""
    settings: dict[str, Any] = {"max_new_tokens": EQUALITY_TOKENS, "temperature": 0.0}
    cached = [token.id for token in generate(model, EQUALITY_PROMPT, **settings)]
    uncached = [token.id for token in generate(model, EQUALITY_PROMPT, cached=False, **settings)]
    sequence = model.tokenizer.encode(EQUALITY_PROMPT) + cached
    cache, differences = model.new_cache(), []
    for stop in range(len(EQUALITY_PROMPT), len(sequence)):
        step = model.forward(sequence[cache.length : stop], cache, rows=1)
        alone = model.forward(sequence[:stop], rows=1)
        differences.append(float(abs(step - alone).max()))
    return Equality(cached == uncached, tuple(differences))


def engine_call(model: Transformer, fed: list[int], cached: int, rows: int) -> Case:
    """A call with `rows` new tokens behind `cached` ones, and the rewind that undoes it."""
    cache = model.new_cache()
    if cached:
        model.forward(fed[:cached], cache)
    new = fed[cached : cached + rows]

    def call() -> None:
        model.forward(new, cache)
        cache.truncate(cached)

    return Case(call, PREFILLS_PER_BLOCK if rows == PREFILL else STEPS_PER_BLOCK)


def _plain(
    target: Transformer, weights: Mapping[str, Array], fed: list[int], cached: int, rows: int
) -> Case:
    """The same call of the plain engine."""
    cache = PlainCache(target.config, target.config.context_length)
    if cached:
        plain_forward(weights, target.config, fed[:cached], cache)
    new = fed[cached : cached + rows]

    def call() -> None:
        plain_forward(weights, target.config, new, cache)
        cache.n = cached

    return Case(call, PREFILLS_PER_BLOCK if rows == PREFILL else STEPS_PER_BLOCK)
