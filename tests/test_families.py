"""One forward for every family: against transformers, and against itself in other portions."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.families import CONFIGS, TOKENS, family_weights
from tinyllm.config import ModelConfig
from tinyllm.model import Transformer

REFERENCE = json.loads((Path(__file__).parent / "references" / "families.json").read_text("utf-8"))[
    "logits"
]


def family(name: str, dtype: str = "float64", **settings) -> Transformer:
    config = ModelConfig.from_json(CONFIGS[name])
    return Transformer(config, family_weights(name), dtype, name, **settings)


@pytest.mark.parametrize("chunk_columns", [0, 16])
@pytest.mark.parametrize("name", CONFIGS)
def test_logits_are_those_of_transformers(name, chunk_columns):
    logits = family(name, chunk_columns=chunk_columns).forward(TOKENS)[-1]
    # transformers makes its rotary angles in float32, whatever the rest is computed in.
    assert np.abs(logits - REFERENCE[name]).max() < (1e-9 if name == "gpt2" else 1e-5)
    in_float32 = family(name, "float32", chunk_columns=chunk_columns).forward(TOKENS)[-1]
    assert np.abs(in_float32 - REFERENCE[name]).max() < 2e-5


@pytest.mark.parametrize("portions", [[1] * 11, [10, 1], [1, 3, 7]])
@pytest.mark.parametrize("name", CONFIGS)
def test_any_portions_give_the_same_logits(name, portions):
    model = family(name)
    cache = model.new_cache()
    rows = [model.forward(TOKENS[cache.length : cache.length + n], cache) for n in portions]
    assert np.abs(np.concatenate(rows) - model.forward(TOKENS)).max() < 1e-13


@pytest.mark.parametrize("name", CONFIGS)
def test_a_paged_cache_gives_the_same_bits(name):
    model = family(name, "float32")
    pool = model.new_pool(n_blocks=8, block_size=4)
    dense, paged = model.new_cache(), pool.new_cache()
    for portion in (TOKENS[:6], TOKENS[6:7], TOKENS[7:]):
        assert np.array_equal(model.forward(portion, dense), model.forward(portion, paged))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_is_written_as_it_is_read(name):
    config = ModelConfig.from_json(CONFIGS[name])
    assert ModelConfig.from_json(config.to_json()) == config
    family_written = config.to_json()["model_type"]
    # Without a window, which makes its context shorter, a mistral is a llama.
    assert family_written == CONFIGS[name]["model_type"].replace("mistral", "llama")


def test_scores_depend_on_distances_not_on_positions():
    """Rotary positions: the same tokens further on have the same attention among themselves."""
    model = family("llama")
    turns = model._turns
    assert np.allclose(turns[3] * turns[8].conj(), turns[20] * turns[25].conj())
    assert np.allclose(np.abs(turns), 1)
