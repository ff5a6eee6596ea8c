"""The output law of speculative decoding is the target's: enumerated, not sampled."""

import itertools

import numpy as np
import pytest

from tinyllm.experiments.enumeration import largest_difference, law
from tinyllm.generation import generate
from tinyllm.sampling import Sampling
from tinyllm.speculative import (
    Costs,
    EarlyExitDrafter,
    FallbackDrafter,
    ModelDrafter,
    NGramDrafter,
    speculate,
)

FILTERS = [(None, 1.0), (5, 1.0), (None, 0.8), (8, 0.9)]
# Each ends in an n-gram it has had before, so that prompt lookup has something to propose.
PROMPTS = ["    return self.x == self.", "self.name = name\n        self.na"]


DRAFTERS = ["draft", "n-gram", "draft + n-gram", "early exit"]


def drafter_named(name, draft64):
    if name == "early exit":
        return EarlyExitDrafter(1)
    if name == "draft + n-gram":
        # Two characters: often enough there and often enough not, so that both speak.
        return FallbackDrafter(NGramDrafter(shortest=2), ModelDrafter(draft64))
    return ModelDrafter(draft64) if name == "draft" else NGramDrafter(shortest=1)


@pytest.mark.parametrize("drafter", ["draft", "n-gram"])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.5])
@pytest.mark.parametrize(("top_k", "top_p"), FILTERS)
def test_the_first_token_has_the_targets_law(target64, draft64, drafter, temperature, top_k, top_p):
    """All V proposals, both verdicts on each, all V draws after a rejection, in closed form.

    A certain proposal has no verdict: the first draw decides.
    """
    for prompt in PROMPTS:
        logits = target64.forward(target64.tokenizer.encode(prompt), rows=1)[0]
        p = Sampling(temperature, top_k, top_p).distribution(logits)
        emitted = np.zeros(96)

        class LastDrawInClosedForm:
            """Enumerates the proposal and the verdict; the first other draw is left as a
            distribution."""

            def __init__(self, proposal, verdict):
                self.proposal, self.verdict, self.weight, self.left = proposal, verdict, 1.0, None
                self.asked = False

            def draw(self, distribution):
                if self.proposal is not None:
                    token, self.proposal = self.proposal, None
                    self.weight *= distribution[token]
                    return token
                if self.left is None:
                    self.left = distribution
                return int(distribution.argmax())

            def accept(self, probability):
                self.asked = True
                self.weight *= probability if self.verdict else 1 - probability
                return self.verdict

        proposals = range(96) if drafter == "draft" else [None]
        seen = set()
        for proposal, verdict in itertools.product(proposals, [True, False]):
            sampler = LastDrawInClosedForm(proposal, verdict)
            if (
                drafter == "draft"
                and proposal_probability(draft64, prompt, temperature, top_k, top_p)[proposal] == 0
            ):
                continue  # never proposed, so the rule is never asked
            event = next(
                speculate(
                    target64,
                    drafter_named(drafter, draft64),
                    prompt,
                    k=1,
                    max_new_tokens=2,
                    temperature=temperature,
                    top_k=top_k,
                    top_p=top_p,
                    sampler=sampler,
                )
            )
            assert len(event.proposed) == 1
            if not sampler.asked and proposal in seen:  # no verdict: both ways are the same
                continue
            seen.add(proposal)
            if event.accepted and sampler.asked:
                emitted[event.tokens[0]] += sampler.weight
            else:
                emitted += sampler.weight * sampler.left
        assert np.abs(emitted - p).max() <= 1e-12


def proposal_probability(draft64, prompt, temperature, top_k, top_p):
    logits = draft64.forward(draft64.tokenizer.encode(prompt), rows=1)[0]
    return Sampling(temperature, top_k, top_p).distribution(logits)


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("top_k", "top_p"), [(2, 1.0), (3, 0.9)])
def test_three_tokens_have_the_joint_law_of_plain_decoding(
    target64, draft64, drafter, k, top_k, top_p
):
    settings = {"max_new_tokens": 3, "temperature": 1.0, "top_k": top_k, "top_p": top_p}

    def plain(sampler):
        return tuple(t.id for t in generate(target64, PROMPTS[0], sampler=sampler, **settings))

    def speculative(sampler):
        rounds = speculate(
            target64,
            drafter_named(drafter, draft64),
            PROMPTS[0],
            k=k,
            sampler=sampler,
            **settings,
        )
        return tuple(token for event in rounds for token in event.tokens)

    expected, emitted = law(plain), law(speculative)
    assert abs(sum(expected.values()) - 1) < 1e-12
    assert len(expected) >= 8
    assert largest_difference(expected, emitted) <= 1e-12


@pytest.mark.parametrize("verify", ["token", "block"])
@pytest.mark.parametrize("k", [1, 3, 8, "auto"])
def test_certain_proposals_leave_a_seeds_text_as_it_is(target64, prompts, k, verify):
    costs = Costs(0.02, dict.fromkeys(range(1, 10), 1.0))
    kept = 0
    for seed, prompt in enumerate(prompts):
        stop = "\n\n" if seed % 2 else ""
        settings = {"temperature": 0.7, "seed": seed, "stop": stop, "top_p": 0.98}
        lookup = NGramDrafter(shortest=1)
        rounds = list(
            speculate(target64, lookup, prompt, k=k, verify=verify, costs=costs, **settings)
        )
        plain = [token.id for token in generate(target64, prompt, **settings)]
        assert [token for event in rounds for token in event.tokens] == plain
        kept += sum(event.accepted for event in rounds)
    assert kept > 20


def test_a_sampler_may_give_numpy_integers(target64):
    class Sampler:
        def __init__(self):
            self.uniform = np.random.default_rng(1).random

        def draw(self, p):
            return p.cumsum().searchsorted(self.uniform() * p.sum())

        def accept(self, probability):
            return self.uniform() < probability

    settings = {"temperature": 0.8, "max_new_tokens": 60}
    lookup = NGramDrafter(shortest=1)
    rounds = list(speculate(target64, lookup, PROMPTS[1], sampler=Sampler(), **settings))
    assert any(0 < event.accepted < len(event.proposed) for event in rounds)
    plain = [token.id for token in generate(target64, PROMPTS[1], sampler=Sampler(), **settings)]
    assert [token for event in rounds for token in event.tokens] == plain


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("k", range(1, 9))
def test_greedy_tokens_are_identical_in_float64(target64, draft64, prompts, drafter, k):
    for prompt in prompts:
        rounds = speculate(target64, drafter_named(drafter, draft64), prompt, k=k)
        tokens = [token for event in rounds for token in event.tokens]
        assert tokens == [token.id for token in generate(target64, prompt)]


@pytest.mark.parametrize("k", range(1, 9))
def test_greedy_tokens_differ_in_float32_only_within_rounding(target, draft, prompts, k):
    for prompt in prompts:
        rounds = speculate(target, draft, prompt, k=k)
        tokens = [token for event in rounds for token in event.tokens]
        plain = [token.id for token in generate(target, prompt)]
        for i, (one, other) in enumerate(zip(tokens, plain, strict=True)):
            if one != other:
                fed = target.tokenizer.encode(prompt) + plain[:i]
                logits = np.sort(target.forward(fed, rows=1)[0])
                gap = logits[-1] - logits[-2]
                assert gap <= 5e-6, f"{prompt!r}, token {i}: top-2 gap {gap}"
                break
