"""The loop's state: caches, stops, caps, and the faults that other engines had."""

import itertools
import random

import numpy as np
import pytest

from tinyllm.cache import CACHE_DTYPES
from tinyllm.config import ModelConfig
from tinyllm.errors import SettingError
from tinyllm.generation import generate
from tinyllm.model import random_model
from tinyllm.sampling import RandomSampler, Sampling
from tinyllm.speculative import Counters, ModelDrafter, NGramDrafter, SpeculativeDecoder, speculate
from tinyllm.speculative.drafters import EarlyExitDrafter, Proposal, RunShape

PROMPT = "    def __init__(self, "


def decoder(target, drafter, prompt=PROMPT, temperature=0.7, stops=frozenset(), **settings):
    tokens = target.tokenizer.encode(prompt)
    kv_dtype = settings.pop("kv_dtype", None)
    run = RunShape(512, target.config.vocab_size, Sampling(temperature), kv_dtype)
    return SpeculativeDecoder(
        target, drafter, tokens, run, stops, RandomSampler(settings.pop("seed", 0)), **settings
    )


def tokens_of(events):
    return [token for event in events for token in event.tokens]


class Fixed:
    """A drafter that proposes given tokens with given certainty, round after round."""

    def __init__(self, tokens, vocab_size=96):
        self.tokens, self.vocab_size = tokens, vocab_size

    def start(self, run):
        return self

    def propose(self, sequence, k, sampler):
        return Proposal(self.tokens[:k], [np.eye(self.vocab_size)[t] for t in self.tokens[:k]])

    def commit(self, sequence):
        pass


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_a_model_drafting_for_itself_accepts_every_token(target64, k, temperature):
    """Fails when full acceptance leaves the draft cache without the last proposed token."""
    loop = decoder(target64, ModelDrafter(target64), temperature=temperature)
    for _ in range(12):
        event = loop.round(k)
        assert (event.accepted, event.closing) == (k, "bonus")
        assert loop.cache.length == loop.draft.cache.length == len(loop.sequence) - 1


@pytest.mark.parametrize("k", [0, 1, 4])
def test_both_caches_end_each_round_at_the_same_length(target, draft, k):
    loop = decoder(target, ModelDrafter(draft), temperature=1.0)
    closings = set()
    for _ in range(25):
        closings.add(loop.round(k).closing)
        assert loop.cache.length == loop.draft.cache.length == len(loop.sequence) - 1
    assert closings == ({"bonus"} if k == 0 else {"bonus", "corrected"})


def test_rounds_without_proposals_still_feed_the_draft(target64):
    loop = decoder(target64, ModelDrafter(target64), temperature=0.0)
    for k in (3, 0, 0, 3, 0, 3):
        assert loop.round(k).accepted == k


# The largest distance of two neighbours, as a share of the largest number.
STEPS = {
    "float32": 2e-5,
    "float16": 2e-3,
    "bfloat16": 2**-7,
    "fp8_e4m3": 2**-3,
    "fp8_e5m2": 2**-2,
    "int8": 1.02 / 127,
    "int8_channel": 1.02 / 127,
    "int4": 1.02 / 7,
    "int4_g8": 1.02 / 7,
    "int4_channel": 1.02 / 7,
}


@pytest.mark.parametrize("dtype", CACHE_DTYPES)
def test_rollback_equals_a_fresh_prefill(target, draft, dtype):
    """The committed tokens one call at a time, in a cache that never held a rejected one."""
    loop = decoder(target, ModelDrafter(draft, dtype), temperature=1.0, kv_dtype=dtype)
    for _ in range(20):
        loop.round(5)
    for model, cache in ((target, loop.cache), (draft, loop.draft.cache)):
        fresh = model.new_cache(dtype)
        model.forward(loop.sequence[:-1], fresh)
        assert cache.length == fresh.length
        for (keys, values), (new_keys, new_values) in zip(cache.layers, fresh.layers, strict=True):
            for one, other in ((keys, new_keys), (values, new_values)):
                held, expected = one.read(cache.length), other.read(cache.length)
                # float32 sums in another order, which may move a value by one step of its type.
                step = STEPS[dtype]
                assert np.abs(held - expected).max() <= step * np.abs(expected).max()


def test_a_stop_token_inside_an_accepted_block_ends_the_output_there(target):
    greedy = [token.id for token in generate(target, PROMPT, max_new_tokens=6)]
    stop = greedy[2]
    first = greedy.index(stop)
    events = list(speculate(target, Fixed(greedy), PROMPT, k=5, stop=[stop], max_new_tokens=40))
    assert tokens_of(events) == greedy[: first + 1]
    assert events[-1].closing == "stopped"
    assert events[-1].accepted == events[-1].tested == first + 1


@pytest.mark.parametrize("k", range(1, 9))
def test_stops_and_caps_are_those_of_plain_decoding(target64, draft64, k):
    """A length cap never hides a stop, and a stop never hides behind a cap."""
    for cap in range(1, 40, 3):
        settings = {"max_new_tokens": cap, "stop": "\n"}
        plain = [token.id for token in generate(target64, PROMPT, **settings)]
        assert tokens_of(speculate(target64, draft64, PROMPT, k=k, **settings)) == plain


@pytest.mark.parametrize("drafter", ["draft", "n-gram"])
def test_a_run_makes_exactly_the_tokens_asked_for(target, draft, drafter):
    chosen = draft if drafter == "draft" else NGramDrafter()
    for k, cap in itertools.product((1, 4, 8), (1, 2, 7, 30)):
        events = list(
            speculate(target, chosen, PROMPT, k=k, max_new_tokens=cap, temperature=1.0, seed=cap)
        )
        assert len(tokens_of(events)) == cap
        assert all(len(event.proposed) <= k for event in events)
        assert [e.position for e in events] == list(
            itertools.accumulate((len(e.tokens) for e in events[:-1]), initial=len(PROMPT))
        )


def test_k_is_clipped_at_the_end_of_the_context(target, draft):
    prompt = [7] * 500
    assert len(tokens_of(speculate(target, draft, prompt, k=8, max_new_tokens=12))) == 12


def test_a_draft_with_a_shorter_context_stops_proposing(target):
    short = random_model(ModelConfig(context_length=30, n_layer=1, n_head=2, n_kv_head=2, width=48))
    events = list(speculate(target, short, PROMPT, k=4, max_new_tokens=40))
    assert len(tokens_of(events)) == 40
    assert events[0].proposed
    assert not events[-1].proposed
    longer_than_the_draft_knows = list(speculate(target, short, [7] * 50, k=4, max_new_tokens=9))
    assert len(tokens_of(longer_than_the_draft_knows)) == 9


def test_accepts_count_only_up_to_the_first_rejection(target):
    """Verdicts right, wrong, right, right count 1."""
    greedy = [token.id for token in generate(target, PROMPT, max_new_tokens=4)]
    wrong = (greedy[1] + 1) % 96
    event = next(speculate(target, Fixed([greedy[0], wrong, *greedy[2:]]), PROMPT, k=4))
    assert (event.accepted, event.tested) == (1, 2)
    assert list(event.tokens) == greedy[:2]
    assert event.closing == "corrected"


def test_temperature_and_filters_apply_to_both_distributions(target, draft):
    for event in speculate(target, draft, PROMPT, k=3, temperature=0.8, top_k=5, max_new_tokens=30):
        assert (np.count_nonzero(event.p, axis=1) <= 5).all()
        assert (np.count_nonzero(event.q, axis=1) <= 5).all()
        assert np.allclose(event.p.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert event.p.shape == (len(event.proposed) + 1, 96)
        assert event.q.shape == (len(event.proposed), 96)


def test_token_zero_is_proposed_accepted_and_drawn(target):
    always_newline = Fixed([0, 0, 0])
    events = list(speculate(target, always_newline, "x = 1", k=3, temperature=1.5, seed=1))
    assert any(event.accepted for event in events)
    assert 0 in tokens_of(events)


def test_a_vocabulary_of_one():
    config = ModelConfig(vocab_size=1, context_length=64, n_layer=1, width=8, n_head=1, n_kv_head=1)
    model = random_model(config)
    events = list(speculate(model, model, [0], k=3, max_new_tokens=10, temperature=1.0))
    assert tokens_of(events) == [0] * 10
    assert Counters.of(events).acceptance_rate == 1.0


def test_n_grams_are_looked_up_in_committed_tokens_only(target):
    loop = decoder(target, NGramDrafter(longest=4, shortest=1), temperature=1.2)
    for _ in range(60):
        committed = list(loop.sequence)
        loop.round(4)
        assert loop.draft._text == "".join(map(chr, committed))


def test_n_grams_prefer_the_longest_and_then_the_latest_match():
    def proposed(*sequence, shortest=1):
        draft = NGramDrafter(longest=3, shortest=shortest).start(RunShape(64, 96, Sampling()))
        return draft.propose(sequence, 2, None).tokens

    assert proposed(1, 2, 3, 9, 2, 3, 8, 5, 1, 2, 3) == [9, 2]
    assert proposed(1, 2, 3, 9, 2, 3, 8, 5, 7, 2, 3) == [8, 5]
    assert proposed(6, 1, 2, 3, 9, 5, 1, 2, 3, 8, 6, 1, 2, 3) == [8, 6], "three, not four"
    assert proposed(0, 0, 5, 0, 0) == [5, 0], "also of token 0"
    assert proposed(1, 2, 3, shortest=2) == []
    assert proposed(2, 1, 2, shortest=2) == [], "one token is too short"
    assert proposed(4) == []


def test_n_grams_are_found_as_a_plain_search_finds_them():
    """Also where a token's id is a character that is no text, and with others of one byte."""
    generator, n_found = random.Random(0), 0
    for _ in range(300):
        ids = [0xD800, 0xDFFF, 0xFFFF, 0x10000, *generator.sample(range(256), 2)]
        alphabet = generator.sample(ids, generator.randrange(1, 5))
        sequence = generator.choices(alphabet, k=generator.randrange(1, 40))
        longest = generator.randrange(1, 9)
        shortest = generator.randrange(1, longest + 1)
        draft = NGramDrafter(longest, shortest).start(RunShape(64, 0x10001, Sampling()))
        for stop in range(1, len(sequence)):
            draft.propose(sequence[:stop], 1, None)
        place = None
        for n in range(shortest, longest + 1):
            for end in range(n, len(sequence)):
                if sequence[end - n : end] == sequence[-n:]:
                    place = end
        expected = [] if place is None else (sequence[place:] * 3)[:3]
        assert draft.propose(sequence, 3, None).tokens == expected
        n_found += place is not None
    assert 50 < n_found < 290


def test_a_repeating_stretch_is_proposed_beyond_its_end():
    sequence = [5, 6, 5, 6]
    draft = NGramDrafter(longest=2, shortest=2).start(RunShape(64, 96, Sampling()))
    assert draft.propose(sequence, 5, None).tokens == [5, 6, 5, 6, 5]


def test_the_same_seed_gives_the_same_run(target, draft):
    runs = [
        tokens_of(speculate(target, draft, PROMPT, k=4, temperature=1.0, seed=seed))
        for seed in (3, 3, 4)
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("k", [0, -1, 65, 2.5, "3", None, True])
def test_k_outside_its_range_is_refused(target, draft, k):
    with pytest.raises(SettingError, match="must be a whole number from 1 to 64, not"):
        speculate(target, draft, PROMPT, k=k)


def test_a_draft_of_another_alphabet_is_refused(target):
    other = random_model(ModelConfig(vocab_size=95))
    with pytest.raises(SettingError, match="95 symbols and the target 96"):
        speculate(target, other, PROMPT)


@pytest.mark.parametrize("certainty", [0.0, float("nan"), -1.0])
def test_a_drafter_without_a_probability_for_its_token_is_refused(target, certainty):
    drafter = Fixed([5])
    drafter.propose = lambda sequence, k, sampler: Proposal([5], [np.eye(96)[5] * certainty])
    with pytest.raises(SettingError, match="proposed token 5, to which its own q gives"):
        next(speculate(target, drafter, PROMPT, k=1))


@pytest.mark.parametrize(
    ("drafter", "kv_dtype"),
    [
        (ModelDrafter, "float64"),
        (ModelDrafter, "int4_channel"),
        (lambda target: EarlyExitDrafter(target.config.n_layer), "float64"),
        (lambda _: NGramDrafter(shortest=1), "float64"),
    ],
)
def test_a_run_may_begin_with_plain_steps(target64, drafter, kv_dtype):
    """The first call reads the prompt whatever it is, and the draft what it has missed."""
    loop = decoder(target64, drafter(target64), temperature=0, kv_dtype=kv_dtype)
    events = [loop.step(), loop.step(), *(loop.round(3) for _ in range(6))]
    made = tokens_of(events)
    plain = generate(target64, PROMPT, max_new_tokens=len(made), kv_dtype=kv_dtype)
    assert made == [token.id for token in plain]
    assert loop.cache.length == len(loop.sequence) - 1
    drafts_itself = not isinstance(drafter(target64), NGramDrafter) and kv_dtype == "float64"
    if drafts_itself:
        assert [event.accepted for event in events[2:]] == [3] * 6
