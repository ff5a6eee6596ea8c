"""bench kv-cache: the same tokens with and without a cache, what a step costs, and what 256 do.

Three kinds of rows: the two ways make the same tokens; one step at chosen positions, in turn, with
the operations of each; and a whole generation both ways. Draws and prints nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tinyllm.errors import ContextOverflowError
from tinyllm.experiments import decode
from tinyllm.experiments.flops import matrix_flops
from tinyllm.experiments.timing import Case, Spread, in_turn, timed
from tinyllm.generation import generate
from tinyllm.model import Transformer

PROMPT = decode.EQUALITY_PROMPT
POSITIONS = (16, 32, 64, 128, 256, 511)
TURNS, STEPS_PER_TURN = 15, 20  # one step is short: many in a turn, as a generation makes them
TOKENS, REPEATS = 256, 3
WAYS = ("uncached", "cached")


@dataclass(frozen=True, slots=True)
class EqualityRow:
    """Greedy decoding both ways."""

    name: str
    tokens: int
    same_tokens: bool
    largest_difference: float  # of two logits, over all steps


@dataclass(frozen=True, slots=True)
class StepRow:
    """The step that makes the logits of the T-th token, both ways."""

    name: str
    T: int  # tokens in the sequence, the one that is fed included
    cached_seconds: Spread
    uncached_seconds: Spread
    ratio: Spread  # uncached / cached, within a turn
    cached_mflop: float
    uncached_mflop: float  # every token through every layer and the head
    engine_mflop: float  # of these, what the engine multiplies when only the last row is wanted


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """A whole generation, both ways."""

    name: str
    tokens: int
    cached_seconds: Spread
    uncached_seconds: Spread
    ratio: Spread


@dataclass(frozen=True, slots=True)
class TokenTime:
    """The seconds one token of a generation took."""

    way: str  # of WAYS
    repeat: int
    seconds: float


Row = EqualityRow | StepRow | GenerationRow


def rows(
    model: Transformer,
    positions: Sequence[int] = POSITIONS,
    turns: int = TURNS,
    tokens: int = TOKENS,
    repeats: int = REPEATS,
) -> Iterator[Row]:
    """The article's measurement of a KV cache, a row as soon as it is known."""
    yield equality_row(model)
    for position in positions:
        yield step(model, position, turns)
    whole = generation_row(generations(model, PROMPT, tokens, repeats), tokens)
    if whole is not None:
        yield whole


def equality_row(model: Transformer) -> EqualityRow:
    """Greedy decoding of the article's prompt both ways, in float32."""
    found = decode.equality(model)
    difference = max(found.differences)
    return EqualityRow("equality", decode.EQUALITY_TOKENS, found.same_tokens, difference)


def step(model: Transformer, position: int, turns: int = TURNS) -> StepRow:
    """Time the step at T = `position` both ways, in turn; a first turn is not counted.

    ContextOverflowError when the model has fewer positions.
    """
    context = model.config.context_length
    if not 1 < position <= context:
        raise ContextOverflowError(f"T must lie in 2..{context}, not at {position}")
    sequence = _greedy(model, position)
    cache = model.new_cache(capacity=position)
    model.forward(sequence[:-1], cache, rows=0)

    def cached() -> None:
        model.forward(sequence[-1:], cache)
        cache.truncate(position - 1)

    cases = {
        "uncached": Case(lambda: model.forward(sequence, rows=1)),
        "cached": Case(cached, STEPS_PER_TURN),
    }
    seconds = in_turn(cases, turns, warm_up=1)
    return StepRow(
        name="step",
        T=position,
        cached_seconds=Spread.of(seconds["cached"]),
        uncached_seconds=Spread.of(seconds["uncached"]),
        ratio=_ratio(seconds),
        cached_mflop=matrix_flops(model.config, 1, position - 1) / 1e6,
        uncached_mflop=matrix_flops(model.config, position) / 1e6,
        engine_mflop=matrix_flops(model.config, position, rows=1) / 1e6,
    )


def _greedy(model: Transformer, length: int) -> list[int]:
    """The prompt and its greedy continuation, `length` tokens of it."""
    sequence = model.tokenizer.encode(PROMPT)[:length]
    wanted = length - len(sequence)
    if wanted:
        sequence += [token.id for token in generate(model, sequence, max_new_tokens=wanted)]
    return sequence


def _ratio(seconds: dict[str, list[float]]) -> Spread:
    pairs = zip(seconds["uncached"], seconds["cached"], strict=True)
    return Spread.of(uncached / cached for uncached, cached in pairs)


def generations(
    model: Transformer, prompt: str, tokens: int = TOKENS, repeats: int = REPEATS, **settings: Any
) -> Iterator[TokenTime]:
    """Generations both ways in turn, `repeats` times over, one event a token.

    `settings` are those of generate(), by default greedy.
    """
    for repeat in range(repeats):
        for way in WAYS:
            way_settings = settings | {"max_new_tokens": tokens, "cached": way == "cached"}
            begin = partial(generate, model, prompt, **way_settings)
            for _token, seconds in timed(begin):
                yield TokenTime(way, repeat, seconds)


def generation_row(times: Iterable[TokenTime], tokens: int = TOKENS) -> GenerationRow | None:
    """The repeats that are whole, as one row; None before the first is."""
    runs: dict[int, dict[str, list[float]]] = {}
    for time in times:
        runs.setdefault(time.repeat, {way: [] for way in WAYS})[time.way].append(time.seconds)
    whole = [run for run in runs.values() if all(len(spent) == tokens for spent in run.values())]
    if not whole:
        return None
    seconds = {way: [sum(run[way]) for run in whole] for way in WAYS}
    return GenerationRow(
        name="generate",
        tokens=tokens,
        cached_seconds=Spread.of(seconds["cached"]),
        uncached_seconds=Spread.of(seconds["uncached"]),
        ratio=_ratio(seconds),
    )
