"""Heads on the target's last hidden state: the right state, the right law, named refusals."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from tinyllm.config import ModelConfig
from tinyllm.errors import SettingError, WeightsError
from tinyllm.experiments.enumeration import largest_difference, law
from tinyllm.generation import generate
from tinyllm.model import random_model
from tinyllm.sampling import RandomSampler, Sampling
from tinyllm.speculative import HeadsDrafter, SpeculativeDecoder, speculate
from tinyllm.speculative.drafters import HEADS_FILE, RunShape, load_heads
from tinyllm.speculative.drafters.heads import head_shapes

PROMPT = "    return self.x == self."


def some_heads(n_heads=3, width=96, vocab_size=96, seed=0):
    """Random and decided enough that their laws differ from position to position."""
    rng = np.random.default_rng(seed)
    shapes = head_shapes(n_heads, width, vocab_size)
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def decoder(target, heads, temperature=1.0, **settings):
    tokens = target.tokenizer.encode(PROMPT)
    run = RunShape(512, 96, Sampling(temperature, **settings))
    return SpeculativeDecoder(target, heads, tokens, run, frozenset(), RandomSampler(1))


def plain_logits(weights, j, state, token):
    """The docstring's formula, in float64 and one number at a time."""
    z = np.array(
        [
            float(np.dot(state, weights[f"{j}.hidden.weight"][:, i].astype(float)))
            + float(weights[f"{j}.token.weight"][token, i])
            for i in range(len(state))
        ]
    )
    block = np.array([h + one / (1 + np.exp(-one)) for h, one in zip(state, z, strict=True)])
    return block @ weights[f"{j}.out.weight"].astype(float)


def test_hidden_states_are_what_the_logits_are_made_of(target64):
    tokens = target64.tokenizer.encode(PROMPT)
    for fed, rows in ((tokens, None), (tokens, 3), (tokens[:1], None)):
        hidden = []
        logits = target64.forward(fed, rows=rows, hidden=hidden)
        states = np.concatenate(hidden)
        assert states.shape == (len(logits), target64.config.width + 1)
        assert np.allclose(target64._weights.head.rows(states), logits, rtol=0, atol=1e-12)
        assert np.allclose(np.square(states[:, :-1]).sum(axis=1), 1, rtol=0, atol=1e-3)


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_q_is_the_heads_law_at_the_state_of_the_last_call(target64, temperature):
    """After every round, whatever was accepted: the state is worked out anew from the text."""
    weights = some_heads()
    loop = decoder(target64, HeadsDrafter(weights), temperature)
    assert loop.round(3).proposed == ()  # nothing to read before the first call
    for _ in range(15):
        *before, last = loop.sequence
        hidden = []
        target64.forward(before, rows=1, hidden=hidden)
        state = hidden[0][0, :-1] * np.sqrt(96)
        event = loop.round(3)
        assert len(event.proposed) == 3
        for j, token in enumerate((last, *event.proposed[:-1]), start=1):
            q = Sampling(temperature).distribution(plain_logits(weights, j, state, token))
            assert np.abs(event.q[j - 1] - q).max() <= 1e-6


def test_a_plain_step_is_observed_too(target64):
    """Else heads would read the state of an older token, or never speak again."""
    weights = some_heads()
    loop = decoder(target64, HeadsDrafter(weights))
    for _ in range(3):
        loop.round(3)
        loop.step()
        hidden = []
        target64.forward(loop.sequence[:-1], rows=1, hidden=hidden)
        last, event = loop.sequence[-1], loop.round(1)
        logits = plain_logits(weights, 1, hidden[0][0, :-1] * np.sqrt(96), last)
        assert np.abs(event.q[0] - Sampling(1.0).distribution(logits)).max() <= 1e-6


@pytest.mark.parametrize("k", [1, 2])
def test_two_tokens_after_a_first_have_the_joint_law(target64, k):
    settings = {"max_new_tokens": 3, "temperature": 1.0, "top_k": 2}
    heads = HeadsDrafter(some_heads())

    def plain(sampler):
        return tuple(t.id for t in generate(target64, PROMPT, sampler=sampler, **settings))

    def speculative(sampler):
        rounds = speculate(target64, heads, PROMPT, k=k, sampler=sampler, **settings)
        return tuple(token for event in rounds for token in event.tokens)

    expected, emitted = law(plain), law(speculative)
    assert len(expected) == 8
    assert largest_difference(expected, emitted) <= 1e-12


def test_no_more_proposals_than_heads(target):
    events = list(speculate(target, HeadsDrafter(some_heads(2)), PROMPT, k=8, max_new_tokens=30))
    assert max(len(event.proposed) for event in events) == 2
    tokens = [token for event in events for token in event.tokens]
    assert tokens == [token.id for token in generate(target, PROMPT, max_new_tokens=30)]


def test_a_file_of_heads_is_read_as_stored(target, tmp_path):
    weights = {name: one.astype(np.float16) for name, one in some_heads().items()}
    save_file(weights, tmp_path / HEADS_FILE)
    loaded = load_heads(tmp_path)
    for j, head in enumerate(loaded.heads, start=1):
        assert np.array_equal(head.hidden, weights[f"{j}.hidden.weight"])
        assert np.array_equal(head.out, weights[f"{j}.out.weight"])
    assert sum(head.nbytes for head in loaded.heads) == 2 * sum(w.nbytes for w in weights.values())
    assert decoder(target, loaded).draft.footprint.weights == 2 * sum(
        w.nbytes for w in weights.values()
    )


@pytest.mark.parametrize("change", ["nothing", "a head less", "misshapen"])
def test_damaged_heads_are_refused(tmp_path, change):
    weights = some_heads()
    if change == "nothing":
        weights = {}
    elif change == "a head less":
        del weights["2.out.weight"]
    else:
        weights["2.out.weight"] = weights["2.out.weight"][:5]
    with pytest.raises(WeightsError, match=r"heads need for each j"):
        HeadsDrafter(weights)


def test_missing_heads_say_how_to_make_them(tmp_path):
    with pytest.raises(WeightsError, match="train --medusa-of"):
        load_heads(tmp_path)


def test_heads_of_another_target_are_refused():
    other = random_model(ModelConfig(n_layer=1, n_head=2, n_kv_head=2, width=48))
    with pytest.raises(SettingError, match="read 96 numbers and know 96 symbols; random has 48"):
        next(speculate(other, HeadsDrafter(some_heads()), PROMPT))
