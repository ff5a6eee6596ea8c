"""Small random models of every family that the engine runs, the same on every machine."""

from typing import Any

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.layers import Array

GPT2: dict[str, Any] = {
    "vocab_size": 97,
    "n_positions": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_embd": 48,
}
LLAMA: dict[str, Any] = {
    "vocab_size": 97,
    "max_position_embeddings": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_size": 48,
    "intermediate_size": 80,
    "rms_norm_eps": 1e-5,
}
# config.json of each, as transformers would write it but for what changes nothing.
CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": {"model_type": "gpt2", **GPT2},
    "llama": {"model_type": "llama", **LLAMA, "rope_theta": 1e5, "tie_word_embeddings": True},
    "llama-biased": {"model_type": "llama", **LLAMA, "attention_bias": True, "mlp_bias": True},
    "mistral": {"model_type": "mistral", **LLAMA, "head_dim": 16, "sliding_window": None},
    "qwen2": {"model_type": "qwen2", **LLAMA},
    "qwen3": {"model_type": "qwen3", **LLAMA, "head_dim": 16},
}
TOKENS = [5, 9, 1, 90, 40, 3, 77, 8, 8, 20, 31]


def family_weights(name: str) -> dict[str, Array]:
    """Weights by their stored names, with gains and biases off their start values."""
    rng = np.random.default_rng(7)
    weights: dict[str, Array] = {}
    for key, shape in ModelConfig.from_json(CONFIGS[name]).weight_shapes.items():
        gain = len(shape) == 1 and key.endswith(".weight")
        weights[key] = rng.normal(float(gain), 0.15, shape).astype(np.float32)
    return weights
