"""The way back by hand against central differences, and the way forward against plain formulae."""

import math

import numpy as np
import pytest

from tinyllm.config import ModelConfig
from tinyllm.training.batches import FULL, Batch
from tinyllm.training.gradient_check import relative_error, worst_errors
from tinyllm.training.losses import cross_entropy, softmax_in_place
from tinyllm.training.network import Network
from tinyllm.training.objectives import Distillation, Objective, next_character
from tinyllm.training.parameters import Array, Parameters

LARGEST = 1e-6


def small_network(n_kv_head: int, block: int = 5) -> Network:
    """Two layers in float64 whose attention needs three blocks of queries, the last one short."""
    config = ModelConfig(
        vocab_size=11, context_length=12, n_layer=2, n_head=4, n_kv_head=n_kv_head, width=16
    )
    parameters = Parameters(config, np.float64)
    generator = np.random.default_rng(n_kv_head)
    parameters.vector[:] = generator.normal(0.0, 0.3, parameters.vector.size)
    return Network(parameters, block=block)


def small_batch(network: Network) -> Batch:
    """Three full windows, with a made-up teacher."""
    generator = np.random.default_rng(7)
    config = network.config
    windows = generator.integers(0, config.vocab_size, (3, config.context_length + 1))
    opinions = generator.normal(0.0, 1.5, (windows[:, 1:].size, config.vocab_size))
    softmax_in_place(opinions)
    teacher = np.round(opinions * FULL).astype(np.uint16)
    return Batch(windows[:, :-1], windows[:, 1:], teacher.reshape(3, -1, config.vocab_size))


@pytest.mark.parametrize(
    ("n_kv_head", "objective", "progress"),
    [
        (4, next_character, 0.0),
        (2, next_character, 0.0),
        (1, next_character, 0.0),
        (2, Distillation(0.5), 0.0),
        (2, Distillation(0.5), 0.9),
    ],
    ids=["text", "text-grouped", "text-one-head", "divergence", "rejection"],
)
def test_every_tensor(n_kv_head: int, objective: Objective, progress: float) -> None:
    network = small_network(n_kv_head)
    batch = small_batch(network)

    def loss() -> float:
        return objective(network.forward(batch.tokens), batch, progress) / batch.tokens.size

    logits = network.forward(batch.tokens)
    objective(logits, batch, progress)
    logits /= batch.tokens.size
    network.backward(logits)
    errors = worst_errors(
        loss, network.parameters, network.gradients, np.random.default_rng(0), entries=16
    )
    assert set(errors) == set(network.config.weight_shapes)
    assert max(errors.values()) <= LARGEST, errors


def test_a_wrong_derivative_is_seen() -> None:
    network = small_network(4)
    batch = small_batch(network)

    def loss() -> float:
        return next_character(network.forward(batch.tokens), batch, 0.0) / batch.tokens.size

    logits = network.forward(batch.tokens)
    next_character(logits, batch, 0.0)
    logits /= batch.tokens.size
    network.backward(logits)
    network.gradients["h.1.mlp.c_fc.bias"][...] *= 1.00001
    errors = worst_errors(loss, network.parameters, network.gradients, np.random.default_rng(0), 8)
    assert errors["h.1.mlp.c_fc.bias"] > LARGEST


def test_relative_error_has_a_floor() -> None:
    assert relative_error(1.0, 1.1) == pytest.approx(0.1 / 1.1)
    assert relative_error(0.0, 1e-12) == pytest.approx(1e-7)


def test_gradients_accumulate() -> None:
    network = small_network(2)
    batch = small_batch(network)

    def add(part: Batch) -> Array:
        logits = network.forward(part.tokens)
        next_character(logits, part, 0.0)
        network.backward(logits)
        return network.gradients.vector.copy()

    whole = add(batch)
    network.gradients.vector[...] = 0.0
    add(batch.rows(0, 1))
    np.testing.assert_allclose(add(batch.rows(1, 3)), whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_kv_head", [4, 2, 1])
def test_forward_is_the_plain_formula(n_kv_head: int) -> None:
    network = small_network(n_kv_head)
    tokens = small_batch(network).tokens
    logits = network.forward(tokens).reshape(*tokens.shape, -1)
    for row, sequence in enumerate(tokens):
        expected = plain_forward(network.config, network.parameters.views, sequence)
        np.testing.assert_allclose(logits[row], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("block", [1, 3, 12, 64])
def test_block_size_changes_nothing(block: int) -> None:
    tokens = small_batch(small_network(2)).tokens
    expected = small_network(2).forward(tokens)
    np.testing.assert_allclose(small_network(2, block).forward(tokens), expected, rtol=1e-10)


def test_shorter_windows_reuse_the_buffers() -> None:
    network = small_network(4)
    batch = small_batch(network)
    expected = network.forward(batch.tokens[:1, :7]).copy()
    network.forward(batch.tokens)
    np.testing.assert_array_equal(network.forward(batch.tokens[:1, :7]), expected)


def test_cross_entropy_survives_large_logits() -> None:
    logits = np.array([[2000.0, 0.0, -2000.0]])
    assert cross_entropy(logits, np.array([1])) == pytest.approx(2000.0)
    np.testing.assert_allclose(logits, [[1.0, -1.0, 0.0]])


def norm(x: Array, gain: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return np.asarray(scaled * gain + bias)


def plain_forward(config: ModelConfig, weights: dict[str, Array], tokens: Array) -> Array:
    """One sequence (T,) -> (T, V), one formula after the other and a loop over the heads."""
    size, groups = config.head_dim, config.n_kv_head
    x = weights["wte.weight"][tokens] + weights["wpe.weight"][: len(tokens)]
    for layer in range(config.n_layer):
        prefix = f"h.{layer}."
        block = {
            name.removeprefix(prefix): weight
            for name, weight in weights.items()
            if name.startswith(prefix)
        }
        y = norm(x, block["ln_1.weight"], block["ln_1.bias"]) @ block["attn.c_attn.weight"]
        stops = [config.width, config.width + groups * size]
        queries, keys, values = (
            np.split(part, part.shape[1] // size, 1) for part in np.split(y, stops, axis=1)
        )
        mixed = []
        for head, query in enumerate(queries):
            group = head // (config.n_head // groups)
            scores = query @ keys[group].T / math.sqrt(size)
            scores[np.triu_indices(len(tokens), 1)] = -np.inf
            softmax_in_place(scores)
            mixed.append(scores @ values[group])
        x = x + np.concatenate(mixed, axis=1) @ block["attn.c_proj.weight"]
        y = norm(x, block["ln_2.weight"], block["ln_2.bias"]) @ block["mlp.c_fc.weight"]
        y = y + block["mlp.c_fc.bias"]
        y = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
        x = x + y @ block["mlp.c_proj.weight"] + block["mlp.c_proj.bias"]
    return np.asarray(
        norm(x, weights["ln_f.weight"], weights["ln_f.bias"]) @ weights["lm_head.weight"].T
    )
