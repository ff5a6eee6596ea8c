"""Toys for the tests of speculation: models whose every token has the same law."""

from collections.abc import Sequence

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.model import Transformer, random_weights
from tinyllm.sampling import RandomSampler


def constant_model(law: Sequence[float]) -> Transformer:
    """A model that gives every next token this law at temperature 1, whatever came before."""
    config = ModelConfig(
        vocab_size=len(law), context_length=256, n_layer=1, width=8, n_head=1, n_kv_head=1
    )
    weights = random_weights(config)
    weights["ln_f.weight"] = np.zeros_like(weights["ln_f.weight"])
    weights["ln_f.bias"] = np.eye(8, dtype=np.float32)[0]
    head = "lm_head.weight" if "lm_head.weight" in weights else "wte.weight"
    weights[head] = np.zeros_like(weights[head])
    logits = np.log(np.asarray(law))
    if weights[head].shape[0] == len(law):
        weights[head][:, 0] = logits
    else:
        weights[head][0] = logits
    return Transformer(config, weights, "float64", "constant")
