"""A layer's weights as the files of each family keep them, under one set of names.

The one place that knows that GPT-2 stores products as (in, out) with Q, K and V side by side, and
Llama as (out, in) and apart. Nothing is computed or copied here: all are views.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.layers import Array


class Linear(NamedTuple):
    """A product and what is added to it."""

    matrix: Array  # (in, out)
    bias: Array | None  # (out,)


class Norm(NamedTuple):
    """What a norm multiplies with and adds."""

    gain: Array  # (C,)
    bias: Array | None  # (C,); None in an rms norm


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """One layer."""

    attention_norm: Norm
    query: Linear  # (C, H D)
    key: Linear  # (C, G D)
    value: Linear  # (C, G D)
    query_gain: Array | None  # (D,), of the norm on each head's query
    key_gain: Array | None
    attention_out: Linear  # (H D, C)
    mlp_norm: Norm
    up: tuple[Linear, ...]  # (C, F): one for GELU; the gate, then the rest, for SwiGLU
    down: Linear  # (F, C)


@dataclass(frozen=True, slots=True)
class StoredEnds:
    """What stands before and behind the layers."""

    token_embedding: Array  # (V, C)
    position_embedding: Array | None  # (context, C); None for rotary positions
    norm: Norm
    head: Array  # (V, C)


def stored_ends(weights: Mapping[str, Array], config: ModelConfig) -> StoredEnds:
    """Embeddings, last norm and head."""
    learned = config.positions == "learned"
    embedding = weights["wte.weight" if learned else "model.embed_tokens.weight"]
    return StoredEnds(
        token_embedding=embedding,
        position_embedding=weights["wpe.weight"] if learned else None,
        norm=_norm(weights, "ln_f" if learned else "model.norm"),
        head=embedding if config.tied_head else weights["lm_head.weight"],
    )


def stored_block(weights: Mapping[str, Array], config: ModelConfig, layer: int) -> StoredBlock:
    """The weights of one layer, looked up when called: a mapping may read them only then."""
    if config.positions == "learned":
        return _gpt2_block(weights, config, f"h.{layer}")
    return _llama_block(weights, config, f"model.layers.{layer}")


def _gpt2_block(weights: Mapping[str, Array], config: ModelConfig, at: str) -> StoredBlock:
    q_width = config.n_head * config.head_dim
    ends = [q_width, q_width + config.n_kv_head * config.head_dim]
    joined = weights[f"{at}.attn.c_attn.weight"]
    bias = weights[f"{at}.attn.c_attn.bias"] if config.qkv_bias else None
    biases = [None] * 3 if bias is None else np.split(bias, ends)
    query, key, value = map(Linear, np.split(joined, ends, axis=1), biases)
    return StoredBlock(
        attention_norm=_norm(weights, f"{at}.ln_1"),
        query=query,
        key=key,
        value=value,
        query_gain=None,
        key_gain=None,
        attention_out=_linear(weights, f"{at}.attn.c_proj", False),
        mlp_norm=_norm(weights, f"{at}.ln_2"),
        up=(_linear(weights, f"{at}.mlp.c_fc", False),),
        down=_linear(weights, f"{at}.mlp.c_proj", False),
    )


def _llama_block(weights: Mapping[str, Array], config: ModelConfig, at: str) -> StoredBlock:
    query, key, value, out = (
        _linear(weights, f"{at}.self_attn.{name}_proj", True) for name in ("q", "k", "v", "o")
    )
    gains = [f"{at}.self_attn.{name}_norm.weight" for name in ("q", "k")]
    query_gain, key_gain = (weights[name] if config.qk_norm else None for name in gains)
    gate, up, down = (
        _linear(weights, f"{at}.mlp.{name}_proj", True) for name in ("gate", "up", "down")
    )
    return StoredBlock(
        attention_norm=_norm(weights, f"{at}.input_layernorm"),
        query=query,
        key=key,
        value=value,
        query_gain=query_gain,
        key_gain=key_gain,
        attention_out=out,
        mlp_norm=_norm(weights, f"{at}.post_attention_layernorm"),
        up=(gate, up),
        down=down,
    )


def _linear(weights: Mapping[str, Array], name: str, transposed: bool) -> Linear:
    matrix = weights[f"{name}.weight"]
    return Linear(matrix.T if transposed else matrix, weights.get(f"{name}.bias"))


def _norm(weights: Mapping[str, Array], name: str) -> Norm:
    return Norm(weights[f"{name}.weight"], weights.get(f"{name}.bias"))
