"""The transformer: folded weights, and forward(tokens, cache) -> logits.

Knows nothing of sampling or of why tokens are fed. One new token takes a path without a mask
on 1-D rows; several tokens (prefill, verification) take the general one. Weights are read-only
and a call keeps no state outside its cache, so threads may share a model.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np

from tinyllm import calibration
from tinyllm.attention import Tree, attend_row, attend_rows, positions_of
from tinyllm.cache import DenseCache, KVCache, PagedPool, Storage, new_cache
from tinyllm.config import ModelConfig
from tinyllm.errors import ContextOverflowError, SettingError, TokenError, whole_number
from tinyllm.folding import FoldedBlock, FoldedWeights, fold
from tinyllm.layers import (
    Array,
    Constants,
    normalise_row,
    normalise_rows,
    path_of,
    place_heads,
    rotary_turns,
    scaled_gelu,
    scaled_swiglu,
)
from tinyllm.overflow import refuse_overflow
from tinyllm.tokenizer import CharTokenizer, Tokenizer, checked_ids
from tinyllm.untrained import random_weights

COMPUTE_DTYPES = ("float32", "float64")


class Transformer:
    """A decoder-only transformer of GPT-2's or Llama's family, for one sequence at a time."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Mapping[str, Array] | FoldedWeights,
        dtype: str = "float32",
        name: str = "model",
        chunk_columns: int | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        """Weights by their family's names, see ModelConfig.weight_shapes, or already folded.

        chunk_columns is the width of the chunks in the second copy of the weights that a few rows
        are multiplied with, see layers.Weight: 0 makes none, None takes what suits the model and
        this machine. The tokenizer is of characters where none is given.
        """
        self.config = config
        self.name = name
        self.dtype = compute_dtype(dtype)
        self.tokenizer: Tokenizer = tokenizer or CharTokenizer()
        if not isinstance(weights, FoldedWeights):
            if chunk_columns is None:
                chunk_columns = calibration.chunk_columns(config.n_parameters * self.dtype.itemsize)
            weights = fold(weights, config, self.dtype, chunk_columns)
        self._weights = weights
        self._constants = Constants.of(self.dtype, config.context_length)
        self._heads = config.n_head, config.n_kv_head, config.head_dim
        self._activate = scaled_gelu if config.activation == "gelu" else scaled_swiglu
        self._head_eps = np.array(config.head_dim * config.norm_eps, self.dtype)
        self._turns: Array | None = None  # (context, D / 2); None for learned positions
        if config.positions == "rotary":
            self._turns = rotary_turns(
                config.head_dim, config.context_length, config.rope_theta, self.dtype
            )

    def new_cache(self, dtype: str | None = None, capacity: int | None = None) -> DenseCache:
        """An empty KV cache for one sequence.

        dtype is the stored type, by default the one computed in; capacity, in tokens, defaults
        to the context length.
        """
        return new_cache(self.config, dtype or self.dtype.name, capacity, self.dtype)

    def new_pool(self, n_blocks: int, block_size: int = 16, dtype: str | None = None) -> PagedPool:
        """Blocks for the KV caches of many sequences: pool.new_cache(prompt) makes one."""
        return PagedPool(self.config, n_blocks, block_size, dtype or self.dtype.name, self.dtype)

    def first_layers(self, n: int) -> "Transformer":
        """The model of the first n layers with the same final norm and head; nothing is copied."""
        n = whole_number(n, "n, the first layers of the model,", 1, self.config.n_layer)
        shallow = copy(self)
        shallow.config = replace(self.config, n_layer=n)
        shallow.name = f"{self.name}'s first {n} of {self.config.n_layer} layers"
        shallow._weights = replace(self._weights, blocks=self._weights.blocks[:n])
        return shallow

    def path(self, n_rows: int) -> str:
        """The path that the widest product of a layer takes for n_rows rows, in words."""
        return path_of(self._weights.blocks[0].up, n_rows)

    def forward(
        self,
        tokens: Sequence[int],
        cache: KVCache | None = None,
        rows: int | None = None,
        hidden: list[Array] | None = None,
        tree: Tree | None = None,
    ) -> Array:
        """Logits (rows, V) of the last `rows` of the T new tokens; all T by default.

        The tokens stand behind those in the cache and are appended to it; without a cache they
        start at position 0. `hidden`, when given, receives what the logits are made of: the rows
        of the residual stream behind the last layer, normalised, as pieces (n, C + 1) that
        together have `rows` rows. With a `tree` the tokens are its nodes, one behind the other in
        the cache but each at its own depth; DenseCache.keep() then leaves one branch.

        Raises TokenError for no token or what is no token id, CacheOverflowError or
        ContextOverflowError for too many, SettingError for rows outside 0..T, a tree that does not
        fit or another model's cache, CacheRangeError for a key or value beyond what the cache's
        dtype can hold; the cache then is unchanged.
        """
        tokens = checked_ids(tokens, self.config.vocab_size)
        n_new = len(tokens)
        if n_new == 0:
            raise TokenError("forward needs at least one token")
        if rows is not None and not 0 <= rows <= n_new:
            raise SettingError(f"rows must lie in 0..{n_new}, the number of new tokens")
        if cache is not None and cache.config is not self.config and cache.config != self.config:
            raise SettingError(
                f"the cache is of another model: make one with {self.name}'s new_cache()"
            )
        start = 0 if cache is None else cache.length
        if start + n_new > self.config.context_length:
            raise ContextOverflowError(
                f"{self.name} has {self.config.context_length} positions and "
                f"{start + n_new} would be needed ({start} cached + {n_new} new): "
                f"shorten the text by {start + n_new - self.config.context_length} tokens"
            )
        if cache is None:
            cache = self.new_cache(capacity=n_new)
        if tree is not None:
            tree.check(n_new, n_new if rows is None else rows, cache.call_ends)
        cache.reserve(n_new)
        # The tokens whose logits nobody wants have only keys and values to leave.
        silent = 0 if rows is None else n_new - rows
        logits: list[Array] = []
        first = 0
        # Most overflows are harmless, see attention.exponentials. Being told of one costs nothing.
        overflows: list[str] = []
        with np.errstate(over="call", invalid="call", call=lambda kind, _: overflows.append(kind)):
            for last in _pieces(start, silent, n_new, cache.call_ends):
                piece = self._run(
                    tokens[first:last], start + first, cache, last > silent, hidden, tree
                )
                if last > silent:
                    logits.append(piece)
                first = last
        if overflows:
            with np.errstate(over="ignore", invalid="ignore"):
                refuse_overflow(self.name, cache, start, start + n_new, logits)
        cache.commit(tokens)
        if len(logits) == 1:
            return logits[0]
        nothing = np.empty((0, self.config.vocab_size), self.dtype)
        return np.concatenate([nothing, *logits])

    def _run(
        self,
        tokens: Sequence[int],
        start: int,
        cache: KVCache,
        wants_logits: bool,
        hidden: list[Array] | None,
        tree: Tree | None,
    ) -> Array:
        """Tokens from position `start` through all layers, by the path for their number.

        -> (T, V); without wants_logits the last layer ends at its keys and values, and what is
        returned means nothing.
        """
        weights = self._weights
        last = None if wants_logits else weights.blocks[-1]
        x: Array
        if len(tokens) == 1:
            x = weights.token_embedding[tokens[0]] + weights.position_embedding[start]
            layer, normalise, product = self._layer_row, normalise_row, weights.head.row
        else:
            x = weights.token_embedding[np.asarray(tokens)]
            x += weights.position_embedding[positions_of(start, len(tokens), tree)]
            layer, normalise, product = self._layer_rows, normalise_rows, weights.head.rows
            if tree is not None:
                layer = partial(layer, tree=tree)
        for block, (keys, values) in zip(weights.blocks, cache.layers, strict=True):
            layer(block, x, start, keys, values, block is last)
        if last is not None:
            return x
        final = normalise(x)
        if hidden is not None:
            hidden.append(final.reshape(len(tokens), -1))
        return product(final).reshape(len(tokens), -1)

    def _layer_row(
        self, block: FoldedBlock, x: Array, start: int, keys: Storage, values: Storage, silent: bool
    ) -> None:
        """One layer on the row of one token, x (C + 1,), in place: no mask, one-row products."""
        n_head, n_kv_head, head_dim = self._heads
        stream = x[:-1]  # (C,); the last place of x belongs to the norms
        qkv = block.qkv.row(normalise_row(x))  # (C + 1,) -> ((H + 2G) D,)
        heads = qkv.reshape(-1, head_dim)  # (H + 2G, D)
        if self._turns is not None:
            place_heads(heads[:-n_kv_head], self._turns[start], block.head_gains, self._head_eps)
        keys.write_one(start, heads[n_head:-n_kv_head])
        values.write_one(start, heads[-n_kv_head:])
        if silent:
            return
        stop, constants = start + 1, self._constants
        mixed = attend_row(heads[:n_head], keys.read(stop), values.read(stop), constants.ones)
        stream += block.attention_out.row(mixed)
        if block.attention_bias is not None:
            stream += block.attention_bias
        hidden = block.up.row(normalise_row(x))  # (C + 1,) -> (F,), with SwiGLU (2 F,)
        stream += block.down.row(self._activate(hidden, constants))
        if block.down_bias is not None:
            stream += block.down_bias

    def _layer_rows(
        self,
        block: FoldedBlock,
        x: Array,
        start: int,
        keys: Storage,
        values: Storage,
        silent: bool,
        tree: Tree | None = None,
    ) -> None:
        """One layer on the rows of T tokens, x (T, C + 1), in place, with the causal mask or a
        tree's."""
        n_head, n_kv_head, head_dim = self._heads
        n_new, stop = len(x), start + len(x)
        stream = x[:, :-1]  # (T, C)
        qkv = block.qkv.rows(normalise_rows(x))  # (T, C + 1) -> (T, (H + 2G) D)
        heads = qkv.reshape(n_new, -1, head_dim)  # (T, H + 2G, D)
        if self._turns is not None:
            turns = self._turns[positions_of(start, n_new, tree), None]
            place_heads(heads[:, :-n_kv_head], turns, block.head_gains, self._head_eps)
        keys.write(start, heads[:, n_head:-n_kv_head])
        values.write(start, heads[:, -n_kv_head:])
        if silent:
            return
        constants = self._constants
        mixed = attend_rows(
            heads[:, :n_head], keys.read(stop), values.read(stop), constants.ones, tree
        )
        stream += block.attention_out.rows(mixed)
        if block.attention_bias is not None:
            stream += block.attention_bias
        hidden = block.up.rows(normalise_rows(x))  # (T, C + 1) -> (T, F), with SwiGLU (T, 2 F)
        stream += block.down.rows(self._activate(hidden, constants))
        if block.down_bias is not None:
            stream += block.down_bias


def compute_dtype(name: str) -> np.dtype:
    """One of COMPUTE_DTYPES as numpy's, else SettingError."""
    if name not in COMPUTE_DTYPES:
        raise SettingError(f"dtype {name!r} is unknown; choose {' or '.join(COMPUTE_DTYPES)}")
    return np.dtype(name)


def _pieces(start: int, silent: int, n_new: int, call_ends: int | None) -> list[int]:
    """Where the pieces end in which n_new tokens from position start on go through the layers."""
    if call_ends is None:
        return [silent, n_new] if 0 < silent < n_new else [n_new]
    inner = range(call_ends - start % call_ends, n_new, call_ends)
    return sorted({silent, n_new, *inner} - {0})


def random_model(config: ModelConfig, seed: int = 0, dtype: str = "float32") -> Transformer:
    """An untrained model, for tests and for timing."""
    return Transformer(config, random_weights(config, seed), dtype, "random")
