"""The transformer: folded weights, and forward(tokens, cache) -> logits.

Knows nothing of sampling or of why tokens are fed. One new token takes a path without a mask
on 1-D rows; several tokens (prefill, verification) take the general one. Weights are read-only
and a call keeps no state outside its cache, so threads may share a model.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tinyllm.cache import DenseCache, KVCache, Storage, new_cache
from tinyllm.config import ModelConfig
from tinyllm.errors import ContextOverflowError, SettingError, TokenError
from tinyllm.folding import FoldedBlock, fold
from tinyllm.layers import (
    Array,
    Constants,
    attend_row,
    attend_rows,
    normalise_row,
    normalise_rows,
    scaled_gelu,
)
from tinyllm.tokenizer import CharTokenizer

COMPUTE_DTYPES = ("float32", "float64")


class Transformer:
    """A decoder-only transformer of GPT-2's kind, for one sequence at a time."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Mapping[str, Array],
        dtype: str = "float32",
        name: str = "model",
    ) -> None:
        """Weights by their GPT-2 names, see ModelConfig.weight_shapes."""
        if dtype not in COMPUTE_DTYPES:
            raise SettingError(f"dtype {dtype!r} is unknown; choose {' or '.join(COMPUTE_DTYPES)}")
        self.config = config
        self.name = name
        self.dtype = np.dtype(dtype)
        self.tokenizer = CharTokenizer()
        self._weights = fold(weights, config, self.dtype)
        self._constants = Constants.of(self.dtype)

    def new_cache(self, dtype: str | None = None, capacity: int | None = None) -> DenseCache:
        """An empty KV cache for one sequence.

        dtype is the stored type, by default the one computed in; capacity, in tokens, defaults
        to the context length.
        """
        return new_cache(self.config, dtype or self.dtype.name, capacity, self.dtype)

    def forward(
        self, tokens: Sequence[int], cache: KVCache | None = None, rows: int | None = None
    ) -> Array:
        """Logits (rows, V) of the last `rows` of the T new tokens; all T by default.

        The tokens stand behind those in the cache and are appended to it; without a cache they
        start at position 0. Raises TokenError for no token or an unknown id,
        CacheOverflowError or ContextOverflowError for too many; the cache then is unchanged.
        """
        n_new = len(tokens)
        if n_new == 0:
            raise TokenError("forward needs at least one token")
        if min(tokens) < 0 or max(tokens) >= self.config.vocab_size:
            raise TokenError(f"token ids must lie in 0..{self.config.vocab_size - 1}")
        if rows is not None and not 0 <= rows <= n_new:
            raise SettingError(f"rows must lie in 0..{n_new}, the number of new tokens")
        start = 0 if cache is None else cache.length
        if start + n_new > self.config.context_length:
            raise ContextOverflowError(
                f"{self.name} has {self.config.context_length} positions and "
                f"{start + n_new} would be needed ({start} cached + {n_new} new): "
                f"shorten the text by {start + n_new - self.config.context_length} tokens"
            )
        if cache is None:
            cache = self.new_cache(capacity=n_new)
        cache.reserve(n_new)
        with np.errstate(over="ignore"):  # see layers.exponentials
            if n_new == 1:
                logits = self._forward_row(tokens[0], start, cache, rows != 0)
            else:
                logits = self._forward_rows(tokens, start, cache, n_new if rows is None else rows)
        cache.commit(n_new)
        return logits

    def _forward_row(self, token: int, position: int, cache: KVCache, wants_logits: bool) -> Array:
        """The path of one token: 1-D rows, products with one row, no mask. -> (1, V)"""
        weights, constants, stop = self._weights, self._constants, position + 1
        n_head, n_kv_head = self.config.n_head, self.config.n_kv_head
        n_heads, head_dim = n_head + 2 * n_kv_head, self.config.head_dim
        x = weights.token_embedding[token] + weights.position_embedding[position]
        stream = x[:-1]  # (C,); the last place of x belongs to the norms
        for block, (keys, values) in zip(weights.blocks, cache.layers, strict=True):
            qkv = normalise_row(x).dot(block.qkv)  # (C + 1,) -> ((H + 2G) D,)
            heads = qkv.reshape(n_heads, head_dim)
            keys.write_one(position, heads[n_head:-n_kv_head])
            values.write_one(position, heads[-n_kv_head:])
            mixed = attend_row(heads[:n_head], keys.read(stop), values.read(stop))
            stream += mixed.dot(block.attention_out)
            hidden = normalise_row(x).dot(block.up)  # (C + 1,) -> (4C,)
            stream += scaled_gelu(hidden, constants).dot(block.down)
            stream += block.down_bias
        if not wants_logits:
            return np.empty((0, self.config.vocab_size), self.dtype)
        logits: Array = normalise_row(x).dot(weights.head)
        return logits[None]

    def _forward_rows(self, tokens: Sequence[int], start: int, cache: KVCache, rows: int) -> Array:
        """The path of T > 1 tokens, with the causal mask among them. -> (rows, V)"""
        weights, constants = self._weights, self._constants
        stop = start + len(tokens)
        x = weights.token_embedding[np.asarray(tokens)]  # (T, C + 1)
        x += weights.position_embedding[start:stop]
        stream = x[:, :-1]  # (T, C); the last place of each row belongs to the norms
        for block, (keys, values) in zip(weights.blocks, cache.layers, strict=True):
            stream += self._attention(block, x, stop, keys, values)
            hidden = normalise_rows(x) @ block.up  # (T, C + 1) -> (T, 4C)
            stream += scaled_gelu(hidden, constants) @ block.down
            stream += block.down_bias
        logits: Array = normalise_rows(x[len(tokens) - rows :]) @ weights.head
        return logits

    def _attention(
        self, block: FoldedBlock, x: Array, stop: int, keys: Storage, values: Storage
    ) -> Array:
        """(T, C + 1) -> (T, C): writes the new keys and values, attends to all up to `stop`."""
        n_new, n_kv_head = len(x), self.config.n_kv_head
        qkv = normalise_rows(x) @ block.qkv  # (T, (H + 2G) D)
        heads = qkv.reshape(n_new, -1, self.config.head_dim)  # (T, H + 2G, D)
        keys.write(stop - n_new, heads[:, -2 * n_kv_head : -n_kv_head])
        values.write(stop - n_new, heads[:, -n_kv_head:])
        queries = heads[:, : -2 * n_kv_head]
        return attend_rows(queries, keys.read(stop), values.read(stop)) @ block.attention_out


def random_weights(config: ModelConfig, seed: int = 0) -> dict[str, Array]:
    """Untrained weights: products and tables N(0, 0.02), gains 1, biases 0 (as GPT-2 starts)."""
    rng = np.random.default_rng(seed)
    weights: dict[str, Array] = {}
    for name, shape in config.weight_shapes.items():
        if name.endswith(".bias"):
            weights[name] = np.zeros(shape, np.float32)
        elif len(shape) == 1:
            weights[name] = np.ones(shape, np.float32)
        else:
            weights[name] = rng.normal(0, 0.02, shape).astype(np.float32)
    return weights


def random_model(config: ModelConfig, seed: int = 0, dtype: str = "float32") -> Transformer:
    """An untrained model, for tests and for timing."""
    return Transformer(config, random_weights(config, seed), dtype, "random")
