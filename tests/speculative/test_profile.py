"""What a profile expects of a run, against every outcome of real runs, and their counters."""

import pytest

from tests.speculative.constant import constant_model
from tinyllm.experiments.enumeration import law
from tinyllm.generation import generate
from tinyllm.sampling import Sampling
from tinyllm.speculative import Costs, Counters, NGramDrafter, speculate
from tinyllm.speculative.profile import profile

PROMPT = "self.name = name\n        self.na"
COSTS = Costs(0.25, {n: 1 + 0.2 * (n - 1) for n in range(1, 10)}, 0.03, 0.06, 0.05, 0.2, 0.15, 0.1)


def enumerated(target, drafter, prompt, k, run):
    """Expected rounds, proposals, accepted and steps of the real loop, over all its choices."""

    def counted(sampler):
        events = list(speculate(target, drafter, prompt, k=k, sampler=sampler, **run))
        counters = Counters.of(events)
        steps = 0.0
        for event in events:
            proposed = len(event.proposed)
            steps += COSTS.round(proposed) + COSTS.catch_up * (0 < proposed == event.accepted)
        return (counters.drafts, counters.proposed, counters.accepted, counters.tested, steps)

    outcomes = law(counted)
    return [sum(out[i] * weight for out, weight in outcomes.items()) for i in range(5)]


def expected(target, drafter, prompt, k, run):
    """The same from profiles, along every text that plain decoding can make."""
    sampling = Sampling(run["temperature"], run.get("top_k"))
    texts = law(
        lambda sampler: tuple(t.id for t in generate(target, prompt, sampler=sampler, **run))
    )
    sums = [0.0] * 5
    for text, weight in texts.items():
        one = profile(target, drafter, prompt, text, sampling).run(k)
        numbers = (one.rounds, one.proposed, sum(one.accepted_at), sum(one.tested_at))
        numbers = (*numbers, one.steps(COSTS))
        sums = [total + weight * number for total, number in zip(sums, numbers, strict=True)]
    return sums


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_expectations_are_those_of_the_real_loop(k):
    models = constant_model([0.2, 0.8]), constant_model([0.5, 0.5])
    run = {"max_new_tokens": 4, "temperature": 1.0}
    real = enumerated(*models, [0], k, run)
    assert expected(*models, [0], k, run) == pytest.approx(real, abs=1e-12)


@pytest.mark.parametrize("drafter", ["draft", "n-gram"])
@pytest.mark.parametrize("k", [1, 2])
def test_trained_models_too(target64, draft64, drafter, k):
    chosen = draft64 if drafter == "draft" else NGramDrafter(shortest=1)
    run = {"max_new_tokens": 4, "temperature": 1.0, "top_k": 2}
    assert expected(target64, chosen, PROMPT, k, run) == pytest.approx(
        enumerated(target64, chosen, PROMPT, k, run), abs=1e-12
    )


@pytest.mark.parametrize(
    ("drafter", "temperature"), [("draft", 0.0), ("n-gram", 0.0), ("n-gram", 0.7)]
)
def test_what_leaves_nothing_to_chance_is_foretold(
    target64, draft64, prompts, drafter, temperature
):
    """At temperature 0, and with certain proposals: the same seed makes the text of the profile."""
    chosen = draft64 if drafter == "draft" else NGramDrafter()
    run = {"temperature": temperature, "seed": 5}
    text = [token.id for token in generate(target64, prompts[2], **run)]
    found = profile(target64, chosen, prompts[2], text, Sampling(temperature))
    for k in range(1, 9):
        counters = Counters.of(speculate(target64, chosen, prompts[2], k=k, **run))
        one = found.run(k)
        assert (one.tokens, one.rounds, one.proposed) == (96, counters.drafts, counters.proposed)
        assert one.tokens_per_call == counters.tokens_per_call
        assert one.accepted_at[: len(counters.accepted_at)] == counters.accepted_at
        assert one.alpha == counters.acceptance_rate
        assert one.conditional[: len(counters.conditional)] == counters.conditional


def test_a_model_drafting_for_itself_is_always_kept(target64):
    text = [token.id for token in generate(target64, PROMPT, max_new_tokens=20, temperature=1.0)]
    found = profile(target64, target64, PROMPT, text, Sampling(1.0), most=4)
    one = found.run(4)
    assert one.rounds == pytest.approx(4)
    assert one.conditional == pytest.approx((1, 1, 1, 1))
    assert one.steps(Costs(0.5, dict.fromkeys(range(1, 6), 1.0))) == pytest.approx(
        4 * 3
    )  # four drafts at half a step, and a step
