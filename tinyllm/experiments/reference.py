"""The plain engine: GPT-2's formulas as they are printed, one numpy expression each.

The yardstick for speed (how a straightforward engine is written) and the oracle for
correctness: nothing is folded, nothing preallocated but the cache, every call takes the same
path. It needs G = H. tinyllm/model.py is the engine proper.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tinyllm.config import NORM_EPS, ModelConfig
from tinyllm.layers import GELU_CUBIC, Array


class PlainCache:
    """Keys and values (H, capacity, D) per layer, of which the first n positions are held."""

    def __init__(self, config: ModelConfig, capacity: int, dtype: str = "float32") -> None:
        shape = (config.n_head, capacity, config.head_dim)
        self.keys = [np.zeros(shape, dtype) for _ in range(config.n_layer)]
        self.values = [np.zeros(shape, dtype) for _ in range(config.n_layer)]
        self.n = 0


def layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    """(T, C) with zero mean and unit variance a row, then gain and bias."""
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    normalised: Array = (x - mean) / np.sqrt(variance + NORM_EPS) * gain + bias
    return normalised


def softmax(x: Array) -> Array:
    """Along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    normalised: Array = e / e.sum(-1, keepdims=True)
    return normalised


def gelu(x: Array) -> Array:
    """GPT-2's tanh approximation."""
    inner = np.sqrt(2 / np.pi).astype(x.dtype) * (x + GELU_CUBIC * x**3)
    activated: Array = 0.5 * x * (1 + np.tanh(inner))
    return activated


def causal_mask(n_new: int, start: int, dtype: np.dtype) -> Array:
    """(T, S + T), added to the scores: new token i may see positions up to start + i."""
    mask: Array = np.triu(np.full((n_new, start + n_new), -1e9, dtype), start + 1)
    return mask


def plain_forward(
    weights: Mapping[str, Array],
    config: ModelConfig,
    tokens: Sequence[int],
    cache: PlainCache,
    mask: Array | None = None,
) -> Array:
    """Logits (T, V) of T new tokens, which are appended to the cache. The mask is causal."""
    n_new, start = len(tokens), cache.n
    stop = start + n_new
    if mask is None:
        mask = causal_mask(n_new, start, weights["wte.weight"].dtype)

    def heads(rows: Array) -> Array:
        return rows.reshape(n_new, config.n_head, config.head_dim).transpose(1, 0, 2)

    x = weights["wte.weight"][np.asarray(tokens)] + weights["wpe.weight"][start:stop]
    for layer in range(config.n_layer):

        def w(name: str, layer: int = layer) -> Array:
            return weights[f"h.{layer}.{name}"]

        h = layer_norm(x, w("ln_1.weight"), w("ln_1.bias"))
        q, k, v = np.split(h @ w("attn.c_attn.weight"), 3, axis=-1)
        cache.keys[layer][:, start:stop] = heads(k)
        cache.values[layer][:, start:stop] = heads(v)
        scores = heads(q) @ cache.keys[layer][:, :stop].transpose(0, 2, 1)
        attention = softmax(scores / np.sqrt(config.head_dim).astype(x.dtype) + mask)
        y = (attention @ cache.values[layer][:, :stop]).transpose(1, 0, 2)
        x = x + y.reshape(n_new, config.width) @ w("attn.c_proj.weight")
        h = layer_norm(x, w("ln_2.weight"), w("ln_2.bias"))
        hidden = gelu(h @ w("mlp.c_fc.weight") + w("mlp.c_fc.bias"))
        x = x + hidden @ w("mlp.c_proj.weight") + w("mlp.c_proj.bias")
    cache.n = stop
    return layer_norm(x, weights["ln_f.weight"], weights["ln_f.bias"]) @ weights["lm_head.weight"].T
