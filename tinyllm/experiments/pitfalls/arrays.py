"""Faults in the arrays of a forward call: too many tokens, no mask, widths, a tiny vocabulary.

The faulty calls are of the plain engine, which checks nothing; the right ones are the engine's.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tinyllm.cache import DenseCache
from tinyllm.experiments.pitfalls.record import Bars, Bench, Result, Seen
from tinyllm.experiments.reference import PlainCache, plain_forward
from tinyllm.layers import Array
from tinyllm.model import Transformer
from tinyllm.sampling import Distribution, Sampling

ROOM, FED = 32, 23  # tokens of a small cache, and of each of two calls
BEYOND = 178  # positions too many
SHOWN = 6  # symbols


def repeated(bench: Bench, count: int) -> list[int]:
    """`count` tokens: the prompt again and again."""
    prompt = bench.prompt_tokens
    return [prompt[i % len(prompt)] for i in range(count)]


def message(call: Callable[[], object]) -> str:
    """What a call says when it fails, with the error's name."""
    try:
        call()
    except (ValueError, IndexError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def unchecked_cache(bench: Bench) -> Array:
    """Feeds two prompts into a cache that has room for one and a half."""
    config, cache = bench.target.config, PlainCache(bench.target.config, ROOM)
    plain_forward(bench.weights, config, repeated(bench, FED), cache)
    return plain_forward(bench.weights, config, repeated(bench, FED), cache)


def measure_cache_overflow(bench: Bench) -> Seen:
    """numpy's words against the engine's, and what the engine's cache holds after."""
    cache = bench.target.new_cache(capacity=ROOM)
    bench.target.forward(repeated(bench, FED), cache)
    said = message(lambda: bench.target.forward(repeated(bench, FED), cache))
    result = Result(
        f"{FED} tokens into a cache of {ROOM} that holds {FED}",
        message(lambda: unchecked_cache(bench)),
        f"refused before anything is written; the cache still holds {cache.length}",
        said,
    )
    return Seen(result)


def unchecked_positions(bench: Bench) -> Array:
    """Feeds more tokens than the position table has rows."""
    count = bench.target.config.context_length + BEYOND
    cache = PlainCache(bench.target.config, count)
    return plain_forward(bench.weights, bench.target.config, repeated(bench, count), cache)


def measure_position_overflow(bench: Bench) -> Seen:
    """numpy's words against the engine's."""
    config = bench.target.config
    count = config.context_length + BEYOND
    result = Result(
        f"{count} tokens, {config.context_length} positions",
        message(lambda: unchecked_positions(bench)),
        "refused before anything is computed",
        message(lambda: bench.target.forward(repeated(bench, count))),
    )
    return Seen(result)


def verify_without_mask(bench: Bench, proposed: Sequence[int]) -> Array:
    """Verifies proposals that all see each other, and so the answer to their own question."""
    config, prompt = bench.target.config, bench.prompt_tokens
    cache = PlainCache(config, len(prompt) + len(proposed))
    if len(prompt) > 1:
        plain_forward(bench.weights, config, prompt[:-1], cache)
    blind = np.zeros((1, 1), np.float32)  # nothing is hidden
    return plain_forward(bench.weights, config, [prompt[-1], *proposed], cache, blind)


def measure_no_mask(bench: Bench) -> Seen:
    """Logits of a verification, and p at the place where it differs most."""
    prompt, target = bench.prompt_tokens, bench.target
    proposed = _greedy(bench.draft, prompt, bench.k)
    wrong = verify_without_mask(bench, proposed)
    right = target.forward([prompt[-1], *proposed], _prefilled(target, prompt))
    alone = _one_by_one(target, prompt, proposed)
    other = int((wrong.argmax(axis=1) != right.argmax(axis=1)).sum())
    result = Result(
        f"largest logit difference of a call of {len(right)} tokens to {len(right)} calls of one",
        f"{abs(wrong - alone).max():.3g}; argmax differs at {other} of {len(right)} places",
        f"{abs(right - alone).max():.2g}",
        "adds -inf to the scores of later positions",
    )
    p, shown = Sampling(1.0).distribution(wrong), Sampling(1.0).distribution(right)
    place = int(abs(p - shown).sum(axis=1).argmax())
    return Seen(result, _likeliest(bench, p[place], shown[place]))


def same_to_the_last_bit(one: Array, other: Array) -> int:
    """Counts the steps whose logits (steps, V) are the same bits, and takes the rest for a bug."""
    return int((one == other).all(axis=1).sum())


def decided_alike(one: Array, other: Array) -> tuple[int, float]:
    """Steps whose argmax is the same, and the least distance of the two best logits."""
    best = np.sort(other, axis=1)
    same = int((one.argmax(axis=1) == other.argmax(axis=1)).sum())
    return same, float((best[:, -1] - best[:, -2]).min())


def measure_widths(bench: Bench) -> Seen:
    """Greedy steps one by one against calls of k + 1, in float32 and in float64."""
    width, prompt = bench.k + 1, bench.prompt_tokens
    found = {}
    for dtype in ("float32", "float64"):
        target = Transformer(bench.target.config, bench.weights, dtype, bench.target.name)
        fed = [prompt[-1], *_greedy(target, prompt, bench.tokens)[:-1]]
        cache = _prefilled(target, prompt)
        calls = [target.forward(fed[i : i + width], cache) for i in range(0, len(fed), width)]
        found[dtype] = np.concatenate(calls), _one_by_one(target, prompt, fed[1:])
    largest = {dtype: abs(one - other).max() for dtype, (one, other) in found.items()}
    same, gap = decided_alike(*found["float32"])
    result = Result(
        f"steps of {bench.tokens} that a call of {width} tokens and calls of one decide alike",
        f"{same_to_the_last_bit(*found['float32'])} to the last bit",
        f"{same} by argmax",
        f"logits differ by {largest['float32']:.1e} in float32 and {largest['float64']:.1e} in "
        f"float64; argmax can change only where the two best lie closer, here {gap:.1e} apart",
    )
    return Seen(result)


def top_k_by_partition(logits: Array, k: int) -> Distribution:
    """Finds the k-th largest logit by its rank, which a smaller vocabulary does not have."""
    threshold = np.partition(logits, -k)[-k]
    weights = np.where(logits >= threshold, np.exp(logits - logits.max()), 0)
    law: Distribution = weights / weights.sum()
    return law


def measure_vocabulary_of_one(bench: Bench) -> Seen:
    """top-k 2 of one symbol."""
    logits = np.zeros(1)
    kept = Sampling(1.0, top_k=2).distribution(logits)
    result = Result(
        "top-k 2 over one symbol",
        message(lambda: top_k_by_partition(logits, 2)),
        f"p = {kept.tolist()}",
        "keeps the first k of the sorted tokens, or all there are",
    )
    return Seen(result)


def _greedy(model: Transformer, prompt: Sequence[int], count: int) -> list[int]:
    """The model's own likeliest continuation."""
    cache, new, made = model.new_cache(), list(prompt), []
    for _ in range(count):
        made.append(int(model.forward(new, cache, rows=1)[0].argmax()))
        new = made[-1:]
    return made


def _prefilled(model: Transformer, prompt: Sequence[int]) -> DenseCache:
    """A cache that holds the prompt but its last token."""
    cache = model.new_cache()
    if len(prompt) > 1:
        model.forward(prompt[:-1], cache, rows=0)
    return cache


def _one_by_one(model: Transformer, prompt: Sequence[int], following: Sequence[int]) -> Array:
    """(1 + len(following), V): logits after the prompt and after each following token."""
    cache = model.new_cache()
    steps = [model.forward(prompt, cache, rows=1)]
    steps += [model.forward([token], cache) for token in following]
    return np.concatenate(steps)


def _likeliest(bench: Bench, wrong: Distribution, right: Distribution) -> Bars:
    """The symbols that either law gives most."""
    order = np.argsort(-np.maximum(wrong, right), kind="stable")[:SHOWN]
    labels = tuple(repr(bench.target.tokenizer.piece(token)) for token in order)
    what = "p of the next symbol, at the place where the two differ most"
    return Bars(labels, tuple(wrong[order].tolist()), tuple(right[order].tolist()), what)
