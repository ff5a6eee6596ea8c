"""Floating-point operations of a call, counted from the shapes of its matrix products.

A product (a, b) @ (b, c) is 2 a b c operations: a multiplication and an addition each. Norms,
softmax, GELU, biases and the look-up of embeddings are not products and are not counted.
"""

from tinyllm.config import ModelConfig


def matrix_flops(config: ModelConfig, new: int, held: int = 0, rows: int | None = None) -> int:
    """Operations for T = `new` tokens behind S = `held` cached ones.

    2 T (L (2 C H D + 2 C G D + 2 C F) + V C) for the weights, where F is the hidden width (with
    SwiGLU 3 C F in place of 2 C F), and 4 L H D for every pair of a token
    and a position it sees, of which there are T S + T (T + 1) / 2.

    `rows` tells how many of the last tokens have logits, all by default. The engine lets the
    others end at the keys and values of the last layer; what they leave out is not counted.
    """
    silent = 0 if rows is None else new - rows
    width, kv_width = config.width, config.n_kv_head * config.head_dim
    q_width = config.n_head * config.head_dim
    mlp_products = 2 if config.activation == "gelu" else 3
    # Query, output and MLP.
    after_kv = 2 * width * q_width + mlp_products * width * config.hidden_width
    layer = 2 * width * kv_width + after_kv
    head = config.vocab_size * width
    weights = new * (config.n_layer * layer + head) - silent * (after_kv + head)
    pairs = config.n_layer * _pairs(new, held) - _pairs(silent, held)
    return 2 * weights + 4 * q_width * pairs


def _pairs(new: int, held: int) -> int:
    """How many (token, position it sees) there are: each sees those held, and up to itself."""
    return new * held + new * (new + 1) // 2
