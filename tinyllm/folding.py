"""Trained weights -> the folded weights that the engine multiplies with.

Layer norm takes off the mean, divides by the deviation, multiplies by a gain and adds a bias.
All but the division is linear, so it can be done once, in the neighbouring weights:
embeddings and residual outputs are centred, so that every row of the residual stream has zero
mean; the gain scales the rows of the product that follows; the bias becomes that product's.
The stored files keep the GPT-2 form; nothing outside tinyllm/model.py sees the folded one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.layers import GELU_SCALE, GELU_UNSCALE, Array


@dataclass(frozen=True, slots=True)
class FoldedBlock:
    """One layer. The products are (in, out) and C-contiguous."""

    qkv: Array  # (C, (H + 2G) D), query columns divided by sqrt(D)
    qkv_bias: Array  # ((H + 2G) D,)
    attention_out: Array  # (H D, C), centred
    up: Array  # (C, 4C), times GELU_SCALE
    up_bias: Array  # (4C,), times GELU_SCALE
    down: Array  # (4C, C), centred, times GELU_UNSCALE
    down_bias: Array  # (C,), centred


@dataclass(frozen=True, slots=True)
class FoldedWeights:
    """The whole model."""

    token_embedding: Array  # (V, C), centred
    position_embedding: Array  # (context, C), centred
    blocks: tuple[FoldedBlock, ...]  # L of them
    head: Array  # (C, V)
    head_bias: Array  # (V,)


def fold(weights: Mapping[str, Array], config: ModelConfig, dtype: np.dtype) -> FoldedWeights:
    """Fold in float64, then round once to dtype. The arrays are read-only: sessions share them."""
    exact = {name: np.asarray(weight, np.float64) for name, weight in weights.items()}

    def ready(array: Array) -> Array:
        array = np.ascontiguousarray(array, dtype)
        array.setflags(write=False)
        return array

    def fold_block(layer: int) -> FoldedBlock:
        w = {
            name.removeprefix(f"h.{layer}."): weight
            for name, weight in exact.items()
            if name.startswith(f"h.{layer}.")
        }
        query_scale = np.ones(w["attn.c_attn.weight"].shape[1])
        query_scale[: config.width] = config.head_dim**-0.5
        qkv = w["attn.c_attn.weight"] * query_scale
        up = GELU_SCALE * w["mlp.c_fc.weight"]
        return FoldedBlock(
            qkv=ready(w["ln_1.weight"][:, None] * qkv),
            qkv_bias=ready(w["ln_1.bias"] @ qkv),
            attention_out=ready(_centre(w["attn.c_proj.weight"])),
            up=ready(w["ln_2.weight"][:, None] * up),
            up_bias=ready(w["ln_2.bias"] @ up + GELU_SCALE * w["mlp.c_fc.bias"]),
            down=ready(GELU_UNSCALE * _centre(w["mlp.c_proj.weight"])),
            down_bias=ready(_centre(w["mlp.c_proj.bias"])),
        )

    return FoldedWeights(
        token_embedding=ready(_centre(exact["wte.weight"])),
        position_embedding=ready(_centre(exact["wpe.weight"])),
        blocks=tuple(fold_block(layer) for layer in range(config.n_layer)),
        head=ready((exact["lm_head.weight"] * exact["ln_f.weight"]).T),
        head_bias=ready(exact["lm_head.weight"] @ exact["ln_f.bias"]),
    )


def _centre(rows: Array) -> Array:
    """Take each row's mean off; layer norm would do so later, on every token."""
    return np.asarray(rows - rows.mean(axis=-1, keepdims=True))
