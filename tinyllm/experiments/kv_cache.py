"""What a cache saves and what it costs: step time against position, and bytes.

At chosen positions of one real generation, a step with the cache and a step that recomputes
everything are timed in turn; then whole generations both ways, and their equality. Draws nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache import DenseCache
from tinyllm.config import ModelConfig
from tinyllm.experiments.cached_decoding import (
    POSITIONS,
    TOKENS,
    EqualityRow,
    GenerationRow,
    TokenTime,
    equality_row,
    generation_row,
    generations,
)
from tinyllm.experiments.flops import matrix_flops
from tinyllm.experiments.settings import CONTEXT_LENGTH, RunConfig
from tinyllm.experiments.timing import Case, Spread, in_turn
from tinyllm.generation import generate
from tinyllm.model import Transformer
from tinyllm.tokenizer import CharTokenizer

ROWS, REPEATS = 14, 5  # evenly spaced positions, and times each


@dataclass(frozen=True, slots=True)
class CacheRow:
    """The measurements at one position of the sequence."""

    position: int  # S, tokens held before the step
    cached_seconds: Spread  # of one step
    uncached_seconds: Spread
    used_bytes: int
    fill: NDArray[np.float32]  # (L G, new positions): size of the key vectors, for showing


@dataclass(slots=True)
class CacheRecord:
    """The rows so far, the whole generations after them, and whether both ways agree."""

    tokens: int  # of one generation
    rows: list[CacheRow] = field(default_factory=list)
    times: list[TokenTime] = field(default_factory=list)
    equality: EqualityRow | None = None

    def take(self, event: CacheRow | TokenTime | EqualityRow) -> bool:
        """Take one event in; a row is worth drawing, a token's time is not."""
        match event:
            case CacheRow():
                self.rows.append(event)
            case EqualityRow():
                self.equality = event
            case TokenTime():
                self.times.append(event)
        return not isinstance(event, TokenTime)

    @property
    def generation(self) -> GenerationRow | None:
        """The generations that are whole."""
        return generation_row(self.times, self.tokens)


def positions(config: RunConfig, rows: int = ROWS) -> list[int]:
    """Evenly spaced positions to measure, from the first new token to the context's last.

    Those at which `bench kv-cache` measures are among them (T tokens: T - 1 held), but for its
    last, which stands just before the context's.
    """
    first, last = len(config.prompt), CONTEXT_LENGTH - 1
    spaced = {round(position) for position in np.linspace(first, last, rows)}
    return sorted(spaced | {T - 1 for T in POSITIONS if first < T < last})


def generated_tokens(config: RunConfig) -> int:
    """How many tokens a whole generation makes: as many as fit behind the prompt, 256 at most."""
    return min(TOKENS, CONTEXT_LENGTH - len(config.prompt))


def watch(config: RunConfig, model: Transformer) -> Iterator[CacheRow | TokenTime | EqualityRow]:
    """Steps at every measured position, whole generations, and what both ways computed."""
    yield from step_times(config, model)
    tokens = generated_tokens(config)
    yield from generations(model, config.prompt, tokens, **config.run_settings)
    yield equality_row(model)


def step_times(
    config: RunConfig, model: Transformer, rows: int = ROWS, repeats: int = REPEATS
) -> Iterator[CacheRow]:
    """Generate until the context is full and, at each measured position, time a step both ways.

    The run's own number of tokens is not used.
    """
    prompt = CharTokenizer().encode(config.prompt)
    whole = {"max_new_tokens": CONTEXT_LENGTH - len(prompt)}
    made = generate(model, prompt, **config.run_settings | whole)
    cache = model.new_cache(config.kv_dtype, CONTEXT_LENGTH)
    sequence = list(prompt)
    cache_from = 0
    for position in positions(config, rows):
        # Position S holds the tokens before it; the token at S is the one the step feeds.
        wanted = position + 1 - len(sequence)
        sequence += [token.id for token in islice(made, wanted)]
        model.forward(sequence[cache_from:position], cache)
        fill = _key_sizes(cache, cache_from, position)
        cached, uncached = _both_ways(model, sequence[: position + 1], cache, repeats)
        yield CacheRow(position, cached, uncached, cache.used_nbytes, fill)
        cache_from = position


def _both_ways(
    model: Transformer, sequence: list[int], cache: DenseCache, repeats: int
) -> tuple[Spread, Spread]:
    """Seconds of the step that feeds the last token: with the cache, and from nothing."""
    held, last = cache.length, sequence[-1:]

    def cached() -> None:
        model.forward(last, cache)
        cache.truncate(held)

    cases = {"cached": Case(cached), "uncached": Case(lambda: model.forward(sequence, rows=1))}
    seconds = in_turn(cases, repeats)
    return Spread.of(seconds["cached"]), Spread.of(seconds["uncached"])


def _key_sizes(cache: DenseCache, start: int, stop: int) -> NDArray[np.float32]:
    """(L G, stop - start): length of each stored key vector."""
    sizes = []
    for storage, _values in cache.layers:
        keys = storage.read(stop)  # (G, D, S)
        lengths = np.linalg.norm(keys, axis=1)  # (G, D, S) -> (G, S)
        sizes.append(lengths[:, start:])
    return np.concatenate(sizes).astype(np.float32)


def table(rows: Iterable[CacheRow], config: ModelConfig) -> list[dict[str, object]]:
    """The rows as plain numbers, with the operations of each step, for export."""
    return [
        {
            "position": row.position,
            "cached_seconds": row.cached_seconds.median,
            "cached_seconds_low": row.cached_seconds.low,
            "cached_seconds_high": row.cached_seconds.high,
            "uncached_seconds": row.uncached_seconds.median,
            "uncached_seconds_low": row.uncached_seconds.low,
            "uncached_seconds_high": row.uncached_seconds.high,
            "cached_mflop": matrix_flops(config, 1, row.position) / 1e6,
            "uncached_mflop": matrix_flops(config, row.position + 1) / 1e6,
            "cache_bytes": row.used_bytes,
        }
        for row in rows
    ]
