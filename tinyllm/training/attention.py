"""Causal attention and its derivative, by blocks of queries so that the masked half is skipped.

A block of queries sees only the keys up to its own end. The exponentials stay unnormalised: the
reciprocal of their sum scales the D-wide outputs instead of the T-wide rows. Query head h reads
KV head h // (H / G). Knows nothing of projections, caches or positions.
"""

import math

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.training.buffers import Buffers
from tinyllm.training.parameters import Array


def query_blocks(length: int, size: int) -> list[tuple[int, int]]:
    """(start, stop) of each block of at most `size` queries."""
    return [(start, min(start + size, length)) for start in range(0, length, size)]


def split_heads(config: ModelConfig, joined: Array) -> tuple[Array, Array, Array]:
    """Views of (B, T, (H + 2 G) D): queries (B, G, H/G, T, D), keys and values (B, G, 1, T, D)."""
    batch, length, _ = joined.shape
    groups, size = config.n_kv_head, config.head_dim
    stops = (config.width, config.width + groups * size)
    parts = (joined[..., : stops[0]], joined[..., stops[0] : stops[1]], joined[..., stops[1] :])
    shapes = (config.n_head // groups, 1, 1)
    queries, keys, values = (
        part.reshape(batch, length, groups, repeat, size).transpose(0, 2, 3, 1, 4)
        for part, repeat in zip(parts, shapes, strict=True)
    )
    return queries, keys, values


class Attention:
    """Forward and backward for one layer; keeps the exponentials and their reciprocal sums."""

    def __init__(self, config: ModelConfig, buffers: Buffers, name: str, block: int) -> None:
        self.config = config
        self.buffers = buffers
        self.name = name
        self.block = block
        self.scale = 1.0 / math.sqrt(config.head_dim)
        self.mask: Array = np.triu(np.full((block, block), -np.inf, buffers.dtype), k=1)

    def _kept(self, start: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Exponentials of the block of queries at `start`, and the reciprocals of their sums."""
        weights = self.buffers.get(f"{self.name}.exponentials.{start}", shape)
        return weights, self.buffers.get(f"{self.name}.reciprocals.{start}", (*shape[:-1], 1))

    def forward(self, joined: Array, out: Array) -> None:
        """joined (B, T, (H + 2 G) D) -> out (B, T, C). The queries in `joined` are scaled."""
        batch, length, width = out.shape
        joined[..., :width] *= self.scale
        queries, keys, values = split_heads(self.config, joined)
        mixed = out.reshape(batch, length, *queries.shape[1:3], -1).transpose(0, 2, 3, 1, 4)
        for start, stop in query_blocks(length, self.block):
            rows = stop - start
            scores, reciprocal = self._kept(start, (*queries.shape[:3], rows, stop))
            np.matmul(queries[..., start:stop, :], keys[..., :stop, :].swapaxes(-1, -2), out=scores)
            scores[..., start:] += self.mask[:rows, :rows]
            np.max(scores, axis=-1, keepdims=True, out=reciprocal)
            scores -= reciprocal
            np.exp(scores, out=scores)
            np.sum(scores, axis=-1, keepdims=True, out=reciprocal)
            np.reciprocal(reciprocal, out=reciprocal)
            part = mixed[..., start:stop, :]
            np.matmul(scores, values[..., :stop, :], out=part)
            part *= reciprocal

    def backward(self, joined: Array, out: Array, upstream: Array, gradient: Array) -> None:
        """Fill gradient (B, T, (H + 2 G) D) from upstream (B, T, C), which is overwritten.

        With E the exponentials and r the reciprocal of their sums: dV = E^T (r dO) and
        dS = E * (r dO V^T - r sum(dO * O)).
        """
        batch, length, width = out.shape
        queries, keys, values = split_heads(self.config, joined)
        d_queries, d_keys, d_values = split_heads(self.config, gradient)
        shape = (batch, length, *queries.shape[1:3], self.config.head_dim)
        d_mixed = upstream.reshape(shape).transpose(0, 2, 3, 1, 4)
        inner = self.buffers.get("attention.inner", (batch, length, width))
        np.multiply(upstream, out, out=inner)
        delta = inner.reshape(shape).sum(axis=-1).transpose(0, 2, 3, 1)[..., None]
        gradient[..., width:] = 0.0
        for start, stop in query_blocks(length, self.block):
            here = slice(start, stop)
            weights, reciprocal = self._kept(start, (*queries.shape[:3], stop - start, stop))
            d_block = d_mixed[..., here, :]
            d_block *= reciprocal
            d_scores = self.buffers.get("attention.scores", weights.shape)
            np.matmul(d_block, values[..., :stop, :].swapaxes(-1, -2), out=d_scores)
            d_scores -= delta[..., here, :] * reciprocal
            d_scores *= weights
            np.matmul(d_scores, keys[..., :stop, :], out=d_queries[..., here, :])
            part = self.buffers.get("attention.part", (*queries.shape[:3], stop, queries.shape[-1]))
            np.matmul(weights.swapaxes(-1, -2), d_block, out=part)
            d_values[..., :stop, :] += part.sum(axis=2, keepdims=True)
            np.matmul(d_scores.swapaxes(-1, -2), queries[..., here, :], out=part)
            d_keys[..., :stop, :] += part.sum(axis=2, keepdims=True)
        gradient[..., :width] *= self.scale
