"""Block verification: the target's law as before, and never fewer tokens a call. Enumerated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.speculative.constant import constant_model
from tinyllm.errors import SettingError
from tinyllm.experiments.enumeration import largest_difference, law
from tinyllm.generation import generate
from tinyllm.speculative import NGramDrafter, speculate
from tinyllm.speculative.acceptance import block_probabilities, block_residual

P, Q = (1 / 3, 2 / 3), (2 / 3, 1 / 3)
PROMPT = "    return self.x == self."
LAWS = arrays(np.float64, 3, elements=st.floats(0.01, 1)).map(lambda a: a / a.sum())


def accepted_of_a_round(target, drafter, prompt, k, verify, **run):
    """Expected accepted proposals of the first round, over all choices of the real loop."""

    def first(sampler):
        events = speculate(
            target,
            drafter,
            prompt,
            k=k,
            max_new_tokens=k + 1,
            temperature=1.0,
            verify=verify,
            sampler=sampler,
            **run,
        )
        return next(events).accepted

    return sum(accepted * weight for accepted, weight in law(first).items())


@pytest.mark.parametrize(
    ("k", "by_token", "by_block"),
    [(2, 10 / 9, 11 / 9), (3, 38 / 27, 5 / 3), (4, 130 / 81, 166 / 81)],
)
def test_the_papers_example(k, by_token, by_block):
    """Sun et al. 2024: p = (1/3, 2/3), q = (2/3, 1/3)."""
    models = constant_model(P), constant_model(Q)
    assert accepted_of_a_round(*models, [0], k, "token") == pytest.approx(by_token, abs=1e-12)
    assert accepted_of_a_round(*models, [0], k, "block") == pytest.approx(by_block, abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(LAWS, LAWS, st.integers(1, 3))
def test_a_block_never_keeps_fewer_in_expectation(p, q, k):
    models = constant_model(p), constant_model(q)
    by_token = accepted_of_a_round(*models, [0], k, "token")
    by_block = accepted_of_a_round(*models, [0], k, "block")
    assert by_block >= by_token - 1e-12
    if k == 1:
        assert by_block == pytest.approx(by_token, abs=1e-12)  # a block of one is a token


@settings(max_examples=10, deadline=None)
@given(LAWS, LAWS, st.integers(1, 3))
def test_any_pair_of_laws_gives_the_targets(p, q, k):
    target, draft = constant_model(p), constant_model(q)
    run = {"max_new_tokens": 3, "temperature": 1.0}

    def speculative(sampler):
        rounds = speculate(target, draft, [0], k=k, verify="block", sampler=sampler, **run)
        return tuple(token for event in rounds for token in event.tokens)

    emitted = law(speculative)
    expected = {(a, b, c): p[a] * p[b] * p[c] for a, b, c in np.ndindex(3, 3, 3)}
    assert largest_difference(expected, emitted) <= 1e-12


@pytest.mark.parametrize("drafter", ["draft", "n-gram"])
@pytest.mark.parametrize("k", [2, 3])
def test_trained_models_keep_their_joint_law(target64, draft64, drafter, k):
    chosen = draft64 if drafter == "draft" else NGramDrafter(shortest=1)
    run = {"max_new_tokens": 4, "temperature": 1.0, "top_k": 2}

    def plain(sampler):
        return tuple(t.id for t in generate(target64, PROMPT, sampler=sampler, **run))

    def speculative(sampler):
        rounds = speculate(target64, chosen, PROMPT, k=k, verify="block", sampler=sampler, **run)
        return tuple(token for event in rounds for token in event.tokens)

    expected, emitted = law(plain), law(speculative)
    assert len(expected) >= 8
    assert largest_difference(expected, emitted) <= 1e-12


@pytest.mark.parametrize("k", [2, 3])
def test_trained_models_keep_no_fewer(target64, draft64, k):
    by_token, by_block = (
        accepted_of_a_round(target64, draft64, PROMPT, k, verify, top_k=3)
        for verify in ("token", "block")
    )
    assert by_block > by_token - 1e-12


@pytest.mark.parametrize("k", [1, 3, 8])
def test_greedy_tokens_are_those_of_plain_decoding(target64, draft64, prompts, k):
    for prompt in prompts[:3]:
        for stop in ("", "\n"):
            rounds = speculate(target64, draft64, prompt, k=k, verify="block", stop=stop)
            tokens = [token for event in rounds for token in event.tokens]
            assert tokens == [token.id for token in generate(target64, prompt, stop=stop)]


def test_a_stop_inside_a_block_ends_the_text_there(target64):
    """A model that drafts for itself keeps whole blocks, also those with a stop inside."""
    run = {"temperature": 1.0, "stop": "\n", "max_new_tokens": 60, "k": 6, "verify": "block"}
    closings = set()
    for seed in range(8):
        events = list(speculate(target64, target64, PROMPT, seed=seed, **run))
        tokens = [token for event in events for token in event.tokens]
        newline = target64.tokenizer.encode("\n")[0]
        assert newline not in tokens[:-1]
        closings.add(events[-1].closing)
        if events[-1].closing == "stopped":
            assert events[-1].accepted == events[-1].tested == len(events[-1].tokens)
    assert "stopped" in closings


def test_the_formulas_on_the_papers_example():
    p, q = np.array([P] * 3), np.array([Q] * 2)
    reached, accept = block_probabilities(p, q, [0, 0])
    assert reached == pytest.approx([1, 1 / 2, 1 / 4])
    # Behind (0): max(0, 1/2 P - Q) = (0, 0): a refused block of two leaves nothing to stop at.
    assert accept == pytest.approx([0, 1 / 4])
    reached, accept = block_probabilities(p, q, [1, 0])
    assert reached == pytest.approx([1, 1, 1 / 2])
    assert accept == pytest.approx([1, 1 / 2])
    assert block_residual(p[0], q[0], 1.0) == pytest.approx([0, 1])
    assert np.array_equal(block_residual(p[0], q[0], 0.1), p[0])  # nothing remains
    assert block_probabilities(p[:1], q[:0], []) == ([1.0], [])


@pytest.mark.parametrize("verify", ["Block", "", None, 3, []])
def test_a_rule_that_is_none_is_refused(target, draft, verify):
    with pytest.raises(SettingError, match="verify must be one of token, block, not"):
        speculate(target, draft, PROMPT, verify=verify)
