"""A model with fewer KV heads from one that has more, by averaging their projections.

Ainslie et al. 2023 (GQA): every group of heads is replaced by its mean, and a short training run
then lets the model use what is left. With as many heads as before nothing changes.
"""

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.errors import ConfigError
from tinyllm.training.parameters import Array, Parameters


def pool_heads(matrix: Array, config: ModelConfig, n_kv_head: int) -> Array:
    """c_attn (C, (H + 2 G) D) with its K and V heads averaged to n_kv_head groups.

    Query head h reads KV head h // (H / G), so that neighbouring heads are pooled together.
    """
    width, size, groups = config.width, config.head_dim, config.n_kv_head
    if groups % n_kv_head:
        raise ConfigError(f"{groups} KV heads cannot be averaged into {n_kv_head} equal groups")
    parts = [matrix[:, :width]]
    for start in (width, width + groups * size):
        heads = matrix[:, start : start + groups * size]
        grouped = heads.reshape(len(matrix), n_kv_head, groups // n_kv_head, size)
        parts.append(grouped.mean(axis=2).reshape(len(matrix), n_kv_head * size))
    return np.concatenate(parts, axis=1)


def converted(source: Parameters, config: ModelConfig) -> Parameters:
    """The source's weights in a configuration that may have fewer KV heads.

    ConfigError names the first other difference.
    """
    for field in ("vocab_size", "context_length", "n_layer", "n_head", "width"):
        there, here = getattr(source.config, field), getattr(config, field)
        if there != here:
            raise ConfigError(f"--init-from has {field} {there}, but the preset asks for {here}")
    weights = dict(source.views)
    for name, matrix in source.views.items():
        if name.endswith("attn.c_attn.weight"):
            weights[name] = pool_heads(matrix, source.config, config.n_kv_head)
    result = Parameters(config, source.vector.dtype)
    result.assign(weights)
    return result
