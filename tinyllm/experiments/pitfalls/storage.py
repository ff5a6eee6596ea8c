"""Faults of what is kept between calls: rollback, prefix reuse, blocks, quantised keys.

The faulty and the right versions work on the engine's caches, on the plain engine's, or, for
blocks, on a pool of a few lines of its own.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tinyllm.cache import DenseCache
from tinyllm.experiments.pitfalls.arrays import message, repeated
from tinyllm.experiments.pitfalls.record import Bars, Bench, Result, Seen
from tinyllm.experiments.prompts import validation_text
from tinyllm.experiments.reference import PlainCache, plain_forward
from tinyllm.layers import Array
from tinyllm.tokenizer import ALPHABET

DTYPES = ("float32", "float16", "int8")
ROLLED_BACK = 24  # tokens before the round that is rolled back
BLOCKS, BLOCK = 64, 16  # of a pool, and tokens of a block
OPERATIONS, ENDS = 500, 0.05  # rounds, and how likely a sequence ends in one
OUTLIER = 50  # times the size of its neighbours
HELD, JUDGED = 256, 128  # tokens whose keys are quantised, and tokens whose loss is taken


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

    result = Result(
        "logits after a prompt that is wholly in the cache",
        message(plain),
        f"the last token again: largest difference {abs(again - first).max():.2g}",
        message(lambda: reuse_everything(bench, len(prompt))),
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
        f"largest logit difference after reusing a prefix with a refused {ALPHABET[refused]!r}",
        f"{reuse(index_when_fed(prompt, [refused], 0)):.3g}",
        f"{reuse(index_when_committed(prompt, [refused], 0)):.2g}",
        "drafters and caches are told only what was committed (Draft.commit, cache.truncate)",
    )
    return Seen(result)


class LeakyPool:
    """Blocks for sequences. Gives back, at the end, the blocks of the tokens that are left."""

    def __init__(self) -> None:
        self.free = list(range(BLOCKS))
        self.held: dict[int, list[int]] = {}  # sequence -> its blocks
        self.length: dict[int, int] = {}

    def resize(self, sequence: int, length: int) -> None:
        """More tokens take blocks; fewer, after a refusal, only change the length."""
        blocks = self.held.setdefault(sequence, [])
        while len(blocks) * BLOCK < length:
            blocks.append(self.free.pop())
        self.length[sequence] = length

    def finish(self, sequence: int) -> None:
        """The blocks behind the length are forgotten."""
        needed = -(-self.length.pop(sequence) // BLOCK)
        self.free += self.held.pop(sequence)[:needed]


class WholePool(LeakyPool):
    """Gives blocks back as soon as no token stands in them."""

    def resize(self, sequence: int, length: int) -> None:
        """Both ways."""
        super().resize(sequence, length)
        blocks = self.held[sequence]
        while (len(blocks) - 1) * BLOCK >= length:
            self.free.append(blocks.pop())


def measure_blocks(bench: Bench) -> Seen:
    """Admit, draft, refuse, abort and finish at random, then end all: are all blocks free?"""
    left = {}
    for kind in (LeakyPool, WholePool):
        pool, rng = kind(), np.random.default_rng(bench.seed)
        for number in range(OPERATIONS):
            if len(pool.held) < 4 and len(pool.free) > 8:
                pool.resize(number, int(rng.integers(1, 4 * BLOCK)))
            for sequence in list(pool.held):
                base, proposed = pool.length[sequence], int(rng.integers(0, 2 * bench.k + 1))
                if len(pool.free) < 2 or rng.random() < ENDS:
                    pool.finish(sequence)
                    continue
                pool.resize(sequence, base + 1 + proposed)
                aborted = rng.random() < ENDS  # in the middle of a round
                kept = 0 if aborted else 1 + int(rng.integers(0, proposed + 1))
                pool.resize(sequence, base + kept)
                if aborted:
                    pool.finish(sequence)
        for sequence in list(pool.held):
            pool.finish(sequence)
        left[kind] = len(pool.free)
    cache = bench.target.new_cache()
    bench.target.forward(bench.prompt_tokens, cache)
    before = cache.nbytes
    cache.truncate(1)
    result = Result(
        f"free blocks of {BLOCKS} when every sequence has ended",
        str(left[LeakyPool]),
        str(left[WholePool]),
        f"the dense cache has no blocks to lose: {before} bytes before and {cache.nbytes} after "
        "a rollback",
    )
    return Seen(result)


def one_scale_a_token(keys: Array) -> Array:
    """int4 keys (H, S, D) with a scale for each head and token: its largest channel sets it."""
    return _rounded(keys, abs(keys).max(axis=2, keepdims=True))


def one_scale_a_channel(keys: Array) -> Array:
    """int4 keys (H, S, D) with a scale for each head and channel: an outlier keeps to itself."""
    return _rounded(keys, abs(keys).max(axis=1, keepdims=True))


def _rounded(keys: Array, largest: Array) -> Array:
    """Keys as whole multiples, from -7 to 7, of a seventh of the largest."""
    scale = largest / 7
    rounded: Array = np.rint(keys / scale) * scale
    return rounded


def measure_outlier_channel(bench: Bench) -> Seen:
    """The loss with one channel of every head's keys made larger, and its queries smaller."""
    config, weights = bench.target.config, dict(bench.weights)
    for layer in range(config.n_layer):
        name = f"h.{layer}.attn.c_attn.weight"
        products = weights[name].copy()
        products[:, 0 : config.width : config.head_dim] /= OUTLIER  # queries
        products[:, config.width : 2 * config.width : config.head_dim] *= OUTLIER  # keys
        weights[name] = products
    text = bench.target.tokenizer.encode(validation_text()[: HELD + JUDGED + 1])
    losses, errors = {}, {}
    cache = PlainCache(config, HELD + JUDGED)
    plain_forward(weights, config, text[:HELD], cache)
    unrounded = [keys[:, :HELD].copy() for keys in cache.keys]
    kinds = {"per token": one_scale_a_token, "per channel": one_scale_a_channel}
    for kind, rounding in ({"float32": np.copy} | kinds).items():
        squares = size = 0.0
        for keys, held in zip(cache.keys, unrounded, strict=True):
            rounded = rounding(held)
            squares += float(((rounded - held) ** 2).sum())
            size += float((held**2).sum())
            keys[:, :HELD] = rounded
        cache.n = HELD
        logits = plain_forward(weights, config, text[HELD:-1], cache)
        losses[kind], errors[kind] = _loss(logits, text[HELD + 1 :]), squares / size
    own = _engine_loss(bench, text, "int8") - _engine_loss(bench, text, "float32")
    result = Result(
        f"loss with int4 keys, one channel x{OUTLIER}; relative mean-square error of the keys",
        f"{losses['per token']:.3f} per token; {errors['per token']:.1e}",
        f"{losses['per channel']:.3f} per channel, {losses['float32']:.3f} unrounded; "
        f"{errors['per channel']:.1e}",
        f"the shipped target has no such channel: its int8 cache changes the loss by {own:+.1e}",
    )
    added = {kind: (losses[kind] - losses["float32"], errors[kind]) for kind in losses}
    labels = ("loss added", "mean-square error")
    return Seen(result, Bars(labels, added["per token"], added["per channel"]))


def _engine_loss(bench: Bench, text: Sequence[int], dtype: str) -> float:
    cache = bench.target.new_cache(dtype)
    bench.target.forward(text[:HELD], cache, rows=0)
    return _loss(bench.target.forward(text[HELD:-1], cache), text[HELD + 1 :])


def _loss(logits: Array, expected: Sequence[int]) -> float:
    """Mean cross-entropy in nats."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-log_p[np.arange(len(expected)), list(expected)].mean())
