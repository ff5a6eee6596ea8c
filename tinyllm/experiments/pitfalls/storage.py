"""Faults of what is kept between calls: rollback, prefix reuse, the prefix index.

The faulty and the right versions work on the engine's caches, or on the plain engine's.
"""

from collections.abc import Callable, Sequence

from tinyllm.cache import DenseCache
from tinyllm.experiments.pitfalls.arrays import message, repeated
from tinyllm.experiments.pitfalls.record import Bars, Bench, Result, Seen
from tinyllm.experiments.reference import PlainCache, plain_forward
from tinyllm.layers import Array

DTYPES = ("float32", "float16", "int8")
ROLLED_BACK = 24  # tokens before the round that is rolled back


def one_too_far(cache: DenseCache, base: int, accepted: int) -> None:
    """Rolls back to the accepted proposals, forgetting the token they were proposed behind."""
    cache.truncate(base + accepted)


def to_the_committed(cache: DenseCache, base: int, accepted: int) -> None:
    """Rolls back to that token and the accepted proposals, as SpeculativeDecoder.round does."""
    cache.truncate(base + 1 + accepted)


def measure_rollback(bench: Bench) -> Seen:
    """The step after a rollback against the step after a fresh prefill, by KV dtype."""
    target, prompt = bench.target, repeated(bench, 2 * ROLLED_BACK)
    fed, committed = prompt[:ROLLED_BACK], prompt[ROLLED_BACK : ROLLED_BACK + 2]
    refused = [(token + 1) % target.config.vocab_size for token in committed]

    def difference(rollback: Callable[[DenseCache, int, int], None], dtype: str) -> float:
        fresh, cache = target.new_cache(dtype), target.new_cache(dtype)
        base = len(fed) - 1
        for one in (fresh, cache):
            target.forward(fed[:-1], one, rows=0)
        target.forward([fed[-1], committed[0], *refused], cache)
        rollback(cache, base, 1)
        target.forward([fed[-1], committed[0]], fresh)
        new = committed[1:]
        return float(abs(target.forward(new, cache) - target.forward(new, fresh)).max())

    wrong = [difference(one_too_far, dtype) for dtype in DTYPES]
    right = [difference(to_the_committed, dtype) for dtype in DTYPES]
    result = Result(
        f"largest logit difference to a fresh prefill, {', '.join(DTYPES)}",
        ", ".join(f"{one:.3g}" for one in wrong),
        ", ".join(f"{one:.2g}" for one in right),
        "keeps the last token and what was accepted behind it",
    )
    return Seen(result, Bars(DTYPES, tuple(wrong), tuple(right)))


def reuse_everything(bench: Bench, held: int) -> Array:
    """Feeds what the prefix cache does not hold, which may be nothing: then there are no logits."""
    return bench.target.forward(bench.prompt_tokens[held:], bench.target.new_cache())


def reuse_all_but_one(bench: Bench, cache: DenseCache) -> Array:
    """Gives the last token up and computes it again, for its logits."""
    prompt = bench.prompt_tokens
    cache.truncate(len(prompt) - 1)
    logits: Array = bench.target.forward(prompt[-1:], cache)
    return logits


def measure_whole_prompt(bench: Bench) -> Seen:
    """A prompt that the cache holds to its last token."""
    cache, prompt = bench.target.new_cache(), bench.prompt_tokens
    first = bench.target.forward(prompt, cache, rows=1)
    again = reuse_all_but_one(bench, cache)

    def plain() -> object:
        held = PlainCache(bench.target.config, len(prompt))
        plain_forward(bench.weights, bench.target.config, prompt, held)
        return plain_forward(bench.weights, bench.target.config, prompt[held.n :], held)[-1]

    pool = bench.target.new_pool(2 * len(prompt), block_size=1)
    bench.target.forward(prompt, pool.new_cache())
    reused = pool.new_cache(prompt).length
    result = Result(
        "logits after a prompt that is wholly in the cache",
        message(plain),
        f"the last token again: largest difference {abs(again - first).max():.2g}",
        f"{message(lambda: reuse_everything(bench, len(prompt)))}; a paged cache reuses {reused} "
        f"of these {len(prompt)} tokens",
    )
    return Seen(result)


def index_when_fed(sequence: Sequence[int], proposed: Sequence[int], accepted: int) -> list[int]:
    """Enters all that was fed into the prefix index, before the verdict."""
    return [*sequence, *proposed]


def index_when_committed(
    sequence: Sequence[int], proposed: Sequence[int], accepted: int
) -> list[int]:
    """Enters what was committed: the rows of the others will hold other tokens."""
    return [*sequence, *proposed[:accepted]]


def measure_index(bench: Bench) -> Seen:
    """A second request for a text that was proposed and refused, on the first one's rows."""
    target, prompt = bench.target, bench.prompt_tokens
    cache = target.new_cache()
    likely = target.forward(prompt, cache, rows=1)[0]
    refused, kept = int(likely.argmin()), int(likely.argmax())
    target.forward([refused], cache)
    cache.truncate(len(prompt))
    target.forward([kept], cache)  # overwrites the refused token's row
    asked = [*prompt, refused, kept]
    alone = target.forward(asked, rows=1)

    def reuse(entered: Sequence[int]) -> float:
        cache.truncate(min(len(entered), cache.length))
        return float(abs(target.forward(asked[cache.length :], cache, rows=1) - alone).max())

    result = Result(
        "largest logit difference after reusing a prefix with a refused "
        f"{target.tokenizer.piece(refused)!r}",
        f"{reuse(index_when_fed(prompt, [refused], 0)):.3g}",
        f"{reuse(index_when_committed(prompt, [refused], 0)):.2g}",
        f"a block that is written to again can no longer be found: the same two requests on a "
        f"paged cache differ by {_paged_difference(bench, refused, kept):.2g}",
    )
    return Seen(result)


def _paged_difference(bench: Bench, refused: int, kept: int) -> float:
    """The same two requests on the engine's pool, in which every block can be found."""
    target, prompt = bench.target, bench.prompt_tokens
    pool = target.new_pool(target.config.context_length, block_size=2)
    first = pool.new_cache()
    target.forward(prompt, first)
    target.forward([refused], first)
    first.truncate(len(prompt))
    target.forward([kept], first)
    asked = [*prompt, refused, kept]
    second = pool.new_cache(asked)
    logits = target.forward(asked[second.length :], second, rows=1)
    return float(abs(logits - target.forward(asked, rows=1)).max())
