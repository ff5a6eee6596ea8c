"""A fault of quantised keys: one scale for a vector with an outlier channel.

The target is rewritten so that a channel of every head's keys is larger and its queries smaller:
the same function, with other keys to round.
"""

from collections.abc import Sequence

import numpy as np

from tinyllm.experiments.pitfalls.record import Bars, Bench, Result, Seen
from tinyllm.experiments.prompts import validation_text
from tinyllm.experiments.reference import PlainCache, plain_forward
from tinyllm.layers import Array
from tinyllm.training.losses import cross_entropy

OUTLIER = 50  # times the size of its neighbours
HELD, JUDGED = 256, 128  # tokens whose keys are quantised, and tokens whose loss is taken


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
    return cross_entropy(logits.astype(np.float64), np.array(expected)) / len(expected)
