"""Trained weights -> the folded weights that the engine multiplies with.

Layer norm takes off the mean, divides by the deviation, multiplies by a gain and adds a bias.
All but the division is linear, so it can be done once, in the neighbouring weights:
embeddings and residual outputs are centred, so that every row of the residual stream has zero
mean; the gain scales the rows of the product that follows; the bias is one more row of it.
The stored files keep the GPT-2 form; nothing outside tinyllm/model.py sees the folded one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tinyllm.config import NORM_EPS, ModelConfig
from tinyllm.layers import GELU_SCALE, GELU_UNSCALE, Array, Weight


@dataclass(frozen=True, slots=True)
class FoldedBlock:
    """One layer. The weights are (in, out) and C-contiguous; a last row of `in` is a bias.

    `down` alone is F-contiguous: with four times more in than out, sums along columns that lie
    in order are faster for one token, as fast for many, and rounded less.
    """

    qkv: Weight  # (C + 1, (H + 2G) D), query columns divided by sqrt(D)
    attention_out: Weight  # (H D, C), centred
    up: Weight  # (C + 1, 4C), times GELU_SCALE
    down: Weight  # (4C, C), centred, times GELU_UNSCALE
    down_bias: Array  # (C,), centred


@dataclass(frozen=True, slots=True)
class FoldedWeights:
    """The whole model. A row of the residual stream has C + 1 places, see normalise_row."""

    token_embedding: Array  # (V, C + 1), centred, 0 in the last place
    position_embedding: Array  # (context, C + 1), centred, sqrt(C eps) in the last place
    blocks: tuple[FoldedBlock, ...]  # L of them
    head: Weight  # (C + 1, V)


def fold(
    weights: Mapping[str, Array], config: ModelConfig, dtype: np.dtype, chunk_bytes: int
) -> FoldedWeights:
    """Fold in float64, then round once to dtype. The arrays are read-only: sessions share them."""
    exact = {name: np.asarray(weight, np.float64) for name, weight in weights.items()}
    norm_size = config.width**0.5  # a row's length over its root mean square

    def ready(matrix: Array, order: Literal["C", "F"] = "C") -> Weight:
        return Weight.of(np.asarray(matrix, dtype, order=order), chunk_bytes)

    def after_norm(norm: str, product: Array, bias: Array | float = 0.0) -> Weight:
        """A (C, out) product with the norm before it: gain on the rows, bias as one more row."""
        gained = norm_size * exact[f"{norm}.weight"][:, None] * product
        return ready(np.vstack([gained, exact[f"{norm}.bias"] @ product + bias]))

    def with_last(rows: Array, last: float) -> Array:
        return table(np.pad(_centre(rows), ((0, 0), (0, 1)), constant_values=last))

    def table(array: Array) -> Array:
        array = np.ascontiguousarray(array, dtype)
        array.setflags(write=False)
        return array

    def fold_block(layer: int) -> FoldedBlock:
        at = f"h.{layer}"
        qkv = exact[f"{at}.attn.c_attn.weight"].copy()
        qkv[:, : config.width] /= config.head_dim**0.5
        return FoldedBlock(
            qkv=after_norm(f"{at}.ln_1", qkv),
            attention_out=ready(_centre(exact[f"{at}.attn.c_proj.weight"])),
            up=after_norm(
                f"{at}.ln_2",
                GELU_SCALE * exact[f"{at}.mlp.c_fc.weight"],
                GELU_SCALE * exact[f"{at}.mlp.c_fc.bias"],
            ),
            down=ready(GELU_UNSCALE * _centre(exact[f"{at}.mlp.c_proj.weight"]), order="F"),
            down_bias=table(_centre(exact[f"{at}.mlp.c_proj.bias"])),
        )

    return FoldedWeights(
        token_embedding=with_last(exact["wte.weight"], 0.0),
        position_embedding=with_last(exact["wpe.weight"], norm_size * NORM_EPS**0.5),
        blocks=tuple(fold_block(layer) for layer in range(config.n_layer)),
        head=after_norm("ln_f", exact["lm_head.weight"].T),
    )


def _centre(rows: Array) -> Array:
    """Take each row's mean off; layer norm would do so later, on every token."""
    return np.asarray(rows - rows.mean(axis=-1, keepdims=True))
