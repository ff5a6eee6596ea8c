"""One attention step that reads a long cache, with fewer and fewer KV heads.

One layer, one new token, random keys and values in the engine's own cache and its own attention
function. All head counts are timed in turn; decoding attention is reading, so the time should fall
with the bytes. What fewer heads cost in quality is another matter: head_quality.py.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from tinyllm.attention import attend_row
from tinyllm.cache import DenseCache, new_cache
from tinyllm.config import ModelConfig
from tinyllm.experiments.timing import Spread
from tinyllm.layers import Array

QUERY_HEADS, HEAD_DIM, CONTEXT = 8, 128, 4096  # the article's layer
KV_HEADS = (8, 4, 2, 1)
TURNS = 51
AT_MOST = 0.30  # of the time of all heads, for a single one: an eighth of the bytes


@dataclass(frozen=True, slots=True)
class AttentionTime:
    """One attention step, timed once."""

    turn: int
    kv_heads: int
    cache_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """The steps of one number of KV heads, beside those of the most heads."""

    name: str
    kv_heads: int
    cache_bytes: int  # of the one layer
    step_seconds: Spread
    share: Spread  # of the time that the most heads take, within a turn
    at_most: float | None  # the bound of the share's median, for a single head
    met: bool | None


def attention_times(
    kv_heads: Sequence[int] = KV_HEADS,
    context: int = CONTEXT,
    turns: int = TURNS,
    query_heads: int = QUERY_HEADS,
    head_dim: int = HEAD_DIM,
) -> Iterator[AttentionTime]:
    """Steps of every number of KV heads in turn, one event a step; a first turn is not counted.

    Every head count has a cache of its own, so that none finds its data warm from another.
    """
    rng = np.random.default_rng(0)
    queries = _random(rng, query_heads, head_dim) / np.float32(head_dim**0.5)
    vectors = _random(rng, 2, context, query_heads, head_dim)
    ones = np.ones(context, np.float32)
    caches = {count: _filled_cache(vectors, count) for count in kv_heads}
    for turn in range(turns + 1):
        for count, cache in caches.items():
            keys, values = cache.layers[0]
            start = perf_counter()
            with np.errstate(over="ignore"):  # see attention.exponentials
                attend_row(queries, keys.read(context), values.read(context), ones)
            seconds = perf_counter() - start
            if turn:
                yield AttentionTime(turn, count, cache.nbytes, seconds)


def _random(rng: np.random.Generator, *shape: int) -> Array:
    return rng.random(shape, np.float32) - np.float32(0.5)


def _filled_cache(vectors: Array, kv_heads: int) -> DenseCache:
    """A cache of one layer that holds the first heads of keys and values (2, S, H, D)."""
    _, context, query_heads, head_dim = vectors.shape
    config = ModelConfig(
        context_length=context,
        n_layer=1,
        n_head=query_heads,
        n_kv_head=kv_heads,
        width=query_heads * head_dim,
    )
    cache = new_cache(config, "float32", context, vectors.dtype)
    for storage, part in zip(cache.layers[0], vectors, strict=True):
        storage.write(0, part[:, :kv_heads])
    cache.commit(range(context))
    return cache


def attention_rows(times: Iterable[AttentionTime]) -> list[AttentionRow]:
    """A row for every number of KV heads, the most first; only whole turns count.

    The bound is that of the article's layer: one KV head of eight.
    """
    turns: dict[int, dict[int, AttentionTime]] = {}
    for time in times:
        turns.setdefault(time.turn, {})[time.kv_heads] = time
    counts = sorted({kv_heads for turn in turns.values() for kv_heads in turn}, reverse=True)
    whole = [turn for turn in turns.values() if len(turn) == len(counts)]
    return [_row(count, counts[0], whole) for count in counts] if whole else []


def _row(kv_heads: int, most: int, turns: Sequence[dict[int, AttentionTime]]) -> AttentionRow:
    share = Spread.of(turn[kv_heads].seconds / turn[most].seconds for turn in turns)
    at_most = AT_MOST if (kv_heads, most) == (1, max(KV_HEADS)) else None
    return AttentionRow(
        name="attention",
        kv_heads=kv_heads,
        cache_bytes=turns[0][kv_heads].cache_bytes,
        step_seconds=Spread.of(turn[kv_heads].seconds for turn in turns),
        share=share,
        at_most=at_most,
        met=None if at_most is None else share.median <= at_most,
    )
