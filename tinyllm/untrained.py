"""Weights before any training, for trainers, tests and timings."""

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.layers import Array


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
