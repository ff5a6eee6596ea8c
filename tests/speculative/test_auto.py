"""k="auto": the law is kept, and what it costs is counted in steps, never timed."""

import itertools
from types import MappingProxyType
from typing import ClassVar

import pytest

from tests.speculative.constant import constant_model
from tests.speculative.pair_costs import COSTS, TOKENS, WIDTHS
from tinyllm.errors import SettingError
from tinyllm.experiments.enumeration import largest_difference, law
from tinyllm.generation import generate
from tinyllm.sampling import RandomSampler, Sampling, certain
from tinyllm.speculative import Costs, ModelDrafter, NGramDrafter, SpeculativeDecoder, speculate
from tinyllm.speculative.auto import LOSS, OWN_ROUNDS
from tinyllm.speculative.drafters import Proposal, RunShape

PROMPT = "    return self.x == self."


def test_nothing_is_drafted_where_even_kept_proposals_do_not_pay(target):
    class Unasked(ModelDrafter):
        def start(self, run):
            draft = super().start(run)
            draft.propose = draft.commit = None  # calling either fails
            return draft

    drafter = Unasked(target)
    events = list(speculate(target, drafter, PROMPT, k="auto", costs=COSTS["dear"], seed=3))
    assert [event.proposed for event in events] == [()] * TOKENS
    plain = [token.id for token in generate(target, PROMPT, seed=3)]
    assert [token for event in events for token in event.tokens] == plain
    assert all(event.p.shape == (1, 96) and event.q.shape == (0, 96) for event in events)
    lengths = [(event.target_cache_peak, event.target_cache_length) for event in events]
    assert lengths == [(len(PROMPT) + i, len(PROMPT) + i) for i in range(TOKENS)]


def test_a_drafter_without_proposals_is_asked_ever_more_rarely(target):
    class Silent(NGramDrafter):
        asked: ClassVar = []

        def start(self, run):
            draft = super().start(run)
            propose = draft.propose

            def counted(sequence, k, sampler):
                self.asked.append(len(sequence))
                proposal = propose(sequence, k, sampler)
                proposal.tokens.clear()
                proposal.q.clear()
                return proposal

            draft.propose = counted
            return draft

    costs = Costs(0.01, dict.fromkeys(WIDTHS, 1.0), asking=0.05)
    list(speculate(target, Silent(), PROMPT, k="auto", costs=costs))
    assert 0 < len(Silent.asked) * 0.05 <= LOSS * TOKENS
    gaps = [later - earlier for earlier, later in itertools.pairwise(Silent.asked)]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 10 * gaps[0]


@pytest.mark.parametrize("right", [False, True])
def test_certain_proposals_are_watched_before_they_are_drafted(target, right):
    """By plain steps, which cost no call of the target beyond their own."""
    run = {"max_new_tokens": TOKENS, "temperature": 0.7, "seed": 5}
    plain = [token.id for token in generate(target, PROMPT, **run)]
    looks, rounds = [], []

    class Prophet:
        def start(self, run):
            return self

        def foresee(self, sequence, k):
            looks.append(len(sequence) - len(PROMPT))
            return self._text(sequence, k)

        def propose(self, sequence, k, sampler):
            rounds.append(len(sequence) - len(PROMPT))
            tokens = self._text(sequence, k)
            return Proposal(tokens, [certain(token, 96) for token in tokens])

        def commit(self, sequence):
            pass

        def _text(self, sequence, k):
            begin = len(sequence) - len(PROMPT)
            return [t if right else (t + 1) % 96 for t in plain[begin : begin + k]]

    costs = COSTS["large"]
    events = list(speculate(target, Prophet(), PROMPT, k="auto", costs=costs, **run))
    assert [token for event in events for token in event.tokens] == plain
    if right:
        assert looks == [0]
        assert rounds[0] == 2
        assert len(events) < TOKENS / 3
    else:
        assert looks == [0, 2, 8, 26, 80]
        assert rounds == []


def test_what_is_foreseen_is_no_more_than_was_asked_for(target):
    class Talkative(NGramDrafter):
        def start(self, run):
            draft = super().start(run)
            draft.foresee = lambda sequence, k: [0] * (k + 1)
            return draft

    run = speculate(target, Talkative(), PROMPT, k="auto", costs=COSTS["lookup"])
    with pytest.raises(SettingError, match="proposed 3 tokens and was asked for 2"):
        list(run)


@pytest.mark.parametrize("verify", ["token", "block"])
@pytest.mark.parametrize("drafter", ["draft", "n-gram"])
def test_the_joint_law_is_that_of_plain_decoding(target64, draft64, drafter, verify):
    chosen = draft64 if drafter == "draft" else NGramDrafter(shortest=1)
    run = {"max_new_tokens": 4, "temperature": 1.0, "top_k": 2}
    asked = set()

    def plain(sampler):
        return tuple(t.id for t in generate(target64, PROMPT, sampler=sampler, **run))

    def speculative(sampler):
        rounds = list(
            speculate(
                target64,
                chosen,
                PROMPT,
                k="auto",
                costs=COSTS["cheap"],
                verify=verify,
                sampler=sampler,
                **run,
            )
        )
        asked.update(len(event.proposed) for event in rounds)
        return tuple(token for event in rounds for token in event.tokens)

    expected, emitted = law(plain), law(speculative)
    assert len(asked) > 1
    assert largest_difference(expected, emitted) <= 1e-12


@pytest.mark.parametrize("costs", COSTS.values(), ids=list(COSTS))
def test_greedy_tokens_are_those_of_plain_decoding(target64, draft64, prompts, costs):
    for prompt in prompts[:4]:
        rounds = speculate(target64, draft64, prompt, k="auto", costs=costs)
        tokens = [token for event in rounds for token in event.tokens]
        assert tokens == [token.id for token in generate(target64, prompt)]


def test_the_same_seed_and_costs_make_the_same_run(target, draft):
    def run(seed):
        settings = {"temperature": 1.0, "seed": seed, "costs": COSTS["large"]}
        return list(speculate(target, draft, PROMPT, k="auto", **settings))

    first, again, other = run(3), run(3), run(4)
    assert first == again != other
    assert len({len(event.proposed) for event in first}) > 1  # k did change


def test_drafting_for_itself_goes_on_after_plain_steps(target64, monkeypatch):
    """The draft catches up in one call, and then keeps every proposal."""
    tokens = target64.tokenizer.encode(PROMPT)
    run = RunShape(200, 96, Sampling(1.0))
    loop = SpeculativeDecoder(
        target64, ModelDrafter(target64), tokens, run, frozenset(), RandomSampler(0)
    )
    calls = []
    forward = type(target64).forward

    def counted(model, new, cache=None, *more, **named):
        if cache is loop.draft.cache:
            calls.append(len(new))
        return forward(model, new, cache, *more, **named)

    monkeypatch.setattr(type(target64), "forward", counted)
    for plain_steps in (1, 5, 2):
        assert loop.round(3).accepted == 3
        calls.clear()
        for _ in range(plain_steps):
            loop.step()
        assert calls == []
        loop.draft.commit(loop.sequence)
        assert calls == [plain_steps]
        assert loop.round(2).accepted == 2
        assert loop.cache.length == loop.draft.cache.length == len(loop.sequence) - 1


def test_a_real_run_is_never_dearer_than_the_ledger_allows():
    """Through the loop, on a pair that agrees on nothing but one token in a hundred."""
    target, draft = constant_model([0.99, 0.01]), constant_model([0.01, 0.99])
    for costs in COSTS.values():
        spent = made = 0.0
        behind = True
        run = {"temperature": 1.0, "max_new_tokens": TOKENS, "costs": costs}
        for event in speculate(target, draft, [0], k="auto", **run):
            proposed = len(event.proposed)
            spent += costs.round(proposed) + costs.returning * behind if proposed else 1
            spent += costs.resuming * (not behind and not proposed)
            spent += costs.catch_up * (0 < proposed == event.accepted)
            made += len(event.tokens)
            behind = not proposed
        assert made == TOKENS
        assert made <= spent
        assert spent + OWN_ROUNDS * (costs.asking + costs.per_round) <= (1 + LOSS) * made + 1e-9


def test_auto_needs_costs(target, draft):
    with pytest.raises(SettingError, match='k="auto" needs costs'):
        speculate(target, draft, PROMPT, k="auto")
    with pytest.raises(SettingError, match="k, the proposals per round, must be"):
        speculate(target, draft, PROMPT, k="car", costs=COSTS["large"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.1, {2: 1.0}), "beginning with 1"),
        ((0.1, {}), "beginning with 1"),
        ((0.1, {0: 1.0, 1: 1.0}), "beginning with 1"),
        ((-0.1, {1: 1.0}), "costs must be at least 0"),
        ((float("nan"), {1: 1.0}), "costs must be at least 0"),
        ((0.1, {1: 0.0}), "verification above 0"),
        ((0.1, {1: float("nan")}), "verification above 0"),
        ((0.1, {1: 1.0}, 0.0, 0.0, 0.0, 0.0, -0.1), "costs must be at least 0"),
    ],
)
def test_costs_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(SettingError, match=message):
        Costs(*arguments)


def test_costs_take_any_mapping():
    table = {1: 1.0, 2: 1.2}
    assert Costs(0.1, MappingProxyType(table)).round(1) == Costs(0.1, table).round(1)


def test_costs_of_a_round():
    costs = Costs(0.1, {1: 1.0, 2: 1.2, 3: 1.5, 5: 2.0}, 0.03, per_round=0.05, per_proposal=0.02)
    assert costs.longest == 2  # a call of four has no known cost
    assert costs.round(0) == pytest.approx(1.03)
    assert costs.round(2) == pytest.approx(0.03 + 1.5 + 0.05 + 0.2 + 0.04)
