"""Toys for the tests of speculation: models whose every token has the same law."""

from collections.abc import Sequence

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.model import Transformer, random_weights


def constant_model(law: Sequence[float]) -> Transformer:
    """A model that gives every next token this law at temperature 1, whatever came before."""
    config = ModelConfig(
        vocab_size=len(law), context_length=256, n_layer=1, width=8, n_head=1, n_kv_head=1
    )
    weights = {name: weight.astype(float) for name, weight in random_weights(config).items()}
    # The last norm gives (1, 0, ..., 0) for anything, and the head answers with the logits.
    weights["ln_f.weight"][:] = 0
    weights["ln_f.bias"][0] = 1
    weights["lm_head.weight"][:, 0] = np.log(law)
    return Transformer(config, weights, "float64", "constant")
