"""Fewer KV heads are the means of neighbouring ones; as many as before are the same weights."""

import dataclasses

import numpy as np
import pytest

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.errors import ConfigError
from tinyllm.training.attention import split_heads
from tinyllm.training.network import Network
from tinyllm.training.parameters import Parameters, initialise
from tinyllm.training.uptraining import converted, pool_heads

FOUR = ModelConfig(vocab_size=7, context_length=8, n_layer=2, n_head=4, n_kv_head=4, width=16)


@pytest.fixture
def source(generator: np.random.Generator) -> Parameters:
    return initialise(FOUR, generator)


@pytest.mark.parametrize("n_kv_head", [4, 2, 1])
def test_heads_are_means_of_neighbours(source: Parameters, n_kv_head: int) -> None:
    config = dataclasses.replace(FOUR, n_kv_head=n_kv_head)
    result = converted(source, config)
    assert {name: view.shape for name, view in result.views.items()} == config.weight_shapes
    for layer in range(2):
        name = f"h.{layer}.attn.c_attn.weight"
        # Seen as activations (1, 16, columns), the heads of a matrix split like those of a text.
        old, new = (split_heads(p.config, p[name][None]) for p in (source, result))
        np.testing.assert_array_equal(
            new[0].reshape(4, 16, 4), old[0].reshape(4, 16, 4), err_msg="queries"
        )
        for there, here in zip(old[1:], new[1:], strict=True):
            means = there.reshape(n_kv_head, 4 // n_kv_head, 16, 4).mean(axis=1)
            np.testing.assert_allclose(here.reshape(n_kv_head, 16, 4), means, rtol=1e-6)


def test_as_many_heads_is_the_identity(source: Parameters) -> None:
    assert converted(source, FOUR).vector.tobytes() == source.vector.tobytes()


def test_equal_heads_lose_nothing(source: Parameters) -> None:
    for layer in range(2):
        matrix = source[f"h.{layer}.attn.c_attn.weight"]
        for start in (16, 32):
            for head in range(1, 4):
                columns = slice(start + 4 * head, start + 4 * head + 4)
                matrix[:, columns] = matrix[:, start : start + 4]
    tokens = np.arange(8)[None] % 7
    expected = Network(source).forward(tokens)
    one = converted(source, dataclasses.replace(FOUR, n_kv_head=1))
    np.testing.assert_allclose(Network(one).forward(tokens), expected, rtol=1e-4, atol=1e-6)


def test_shipped_shapes_can_be_made_from_the_target() -> None:
    target = Parameters(PRESETS["target"])
    for name in ("target-kv2", "target-kv1"):
        assert converted(target, PRESETS[name]).config == PRESETS[name]


def test_what_cannot_be_converted_is_named(source: Parameters) -> None:
    with pytest.raises(ConfigError, match="n_layer 2, but the preset asks for 3"):
        converted(source, dataclasses.replace(FOUR, n_layer=3))
    with pytest.raises(ConfigError, match="1 KV heads cannot be averaged into 4"):
        pool_heads(np.zeros((16, 24)), dataclasses.replace(FOUR, n_kv_head=1), 4)
