"""Training of heads: derivatives by hand against differences, and rows that meet their laws."""

import numpy as np
import pytest

from tinyllm.loading import find_model
from tinyllm.speculative.drafters.heads import Head, head_shapes
from tinyllm.training import heads as training
from tinyllm.training.checkpoint import load_parameters
from tinyllm.training.gradient_check import worst_errors
from tinyllm.training.heads import HeadsNetwork, HeadsTrainer, rows_of, states_and_laws
from tinyllm.training.losses import divergence
from tinyllm.training.network import Network
from tinyllm.training.parameters import NamedVector, initialise
from tinyllm.training.schedule import Plan

WIDTH, VOCAB, ROWS = 6, 7, 9


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(4)


def test_gradients_are_those_of_differences(generator) -> None:
    """Of the divergence; the rejection rate has corners, and a test of its own."""
    parameters = NamedVector(head_shapes(2, WIDTH, VOCAB), np.float64)
    parameters.vector[...] = generator.normal(0, 0.7, parameters.vector.shape)
    network = HeadsNetwork(parameters)
    states = generator.normal(size=(ROWS, WIDTH))
    tokens = generator.integers(0, VOCAB, ROWS)
    laws = generator.dirichlet(np.ones(VOCAB), ROWS)

    def loss() -> float:
        return sum(divergence(network.forward(j, states, tokens), laws) for j in (1, 2))

    for j in (1, 2):
        logits = network.forward(j, states, tokens)
        divergence(logits, laws)
        network.backward(j, logits)
    worst = worst_errors(loss, parameters, network.gradients, generator)
    assert max(worst.values()) < 1e-6, worst


def test_training_and_drafting_compute_the_same_logits(generator) -> None:
    parameters = NamedVector(head_shapes(1, WIDTH, VOCAB))
    parameters.vector[...] = generator.normal(0, 0.7, parameters.vector.shape)
    states = generator.normal(size=(ROWS, WIDTH)).astype(np.float32)
    tokens = generator.integers(0, VOCAB, ROWS)
    parts = ("hidden", "token", "out")
    head = Head(*(parameters[f"1.{part}.weight"] for part in parts))
    together = HeadsNetwork(parameters).forward(1, states, tokens)
    for row, state, token in zip(together, states, tokens, strict=True):
        assert np.allclose(head.logits(state, int(token)), row, rtol=0, atol=1e-5)


def test_a_head_meets_the_law_of_the_token_after_the_one_it_sees() -> None:
    """By marks: the state at t holds t, the law at t holds t, the token at t is t."""
    windows = np.arange(10).reshape(2, 5)
    states = windows[:, :, None] * np.ones(3)
    laws = windows[:, :, None] * np.ones(4)
    for j in (1, 3):
        read, tokens, taught = rows_of(j, windows, states, laws)
        assert (tokens == read[:, 0] + j).all()
        assert (tokens == taught[:, 0]).all()
        assert len(tokens) == 2 * (5 - j)


def test_states_and_laws_are_the_engines(target) -> None:
    tokens = target.tokenizer.encode("def close(self):\n    ")
    network = Network(load_parameters(find_model("target")))
    states, laws = states_and_laws(network, np.array([tokens]))
    hidden: list = []
    logits = target.forward(tokens, hidden=hidden)
    scale = np.sqrt(target.config.width)
    assert np.allclose(hidden[0][:, :-1] * scale, states[0], rtol=0, atol=2e-4)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert np.allclose(p / p.sum(axis=1, keepdims=True), laws[0], rtol=0, atol=1e-4)


def test_heads_learn_what_a_target_says_next(tiny_config, generator) -> None:
    """On a text of one line over and over, every head is accepted more often in the end."""
    target = Network(initialise(tiny_config, generator))
    target.parameters["lm_head.weight"][...] *= 20  # untrained, but decided
    text = np.tile(np.arange(1, 30, dtype=np.uint8), 200)
    length = tiny_config.context_length
    plan = Plan(
        steps=60,
        tokens_per_step=8 * length,
        tokens_at_once=4 * length,
        lengths=(length,),
        shares_first=(1.0,),
        shares_last=(1.0,),
    )
    trainer = HeadsTrainer(target, plan, text, generator)
    before = training.acceptance(target, trainer.network, text, 4)
    frozen = target.parameters.vector.copy()
    steps = list(trainer.run())
    after = training.acceptance(target, trainer.network, text, 4)
    assert [done.step for done in steps] == list(range(1, 61))
    assert all(one > other + 0.05 for one, other in zip(after, before, strict=True))
    assert (target.parameters.vector == frozen).all()
