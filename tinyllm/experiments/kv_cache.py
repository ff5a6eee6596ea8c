"""What a cache saves and what it costs: step time against position, and bytes.

At chosen positions of one real generation, a step with the cache and a step that recomputes
everything are timed in turn. Draws nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache import DenseCache
from tinyllm.experiments.settings import CONTEXT_LENGTH, RunConfig
from tinyllm.experiments.timing import Case, Spread, in_turn
from tinyllm.generation import generate
from tinyllm.model import Transformer
from tinyllm.tokenizer import CharTokenizer

ROWS, REPEATS = 18, 5  # positions measured, and times each


@dataclass(frozen=True, slots=True)
class CacheRow:
    """The measurements at one position of the sequence."""

    position: int  # S, tokens held before the step
    cached: Spread  # seconds of one step
    uncached: Spread
    used_bytes: int
    fill: NDArray[np.float32]  # (L G, new positions): size of the key vectors, for showing


@dataclass(slots=True)
class CacheRecord:
    """The rows so far."""

    rows: list[CacheRow] = field(default_factory=list)

    def take(self, row: CacheRow) -> bool:
        """Take one row in; each is worth drawing."""
        self.rows.append(row)
        return True


def positions(config: RunConfig, rows: int = ROWS) -> list[int]:
    """Evenly spaced positions to measure, from the first new token to the context's last."""
    first, last = len(config.prompt), CONTEXT_LENGTH - 1
    return sorted({round(position) for position in np.linspace(first, last, rows)})


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


def table(rows: Iterable[CacheRow]) -> list[dict[str, object]]:
    """The rows as plain numbers, for export."""
    return [
        {
            "position": row.position,
            "cached_seconds": row.cached.median,
            "cached_low": row.cached.low,
            "cached_high": row.cached.high,
            "uncached_seconds": row.uncached.median,
            "uncached_low": row.uncached.low,
            "uncached_high": row.uncached.high,
            "cache_bytes": row.used_bytes,
        }
        for row in rows
    ]
