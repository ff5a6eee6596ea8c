"""Drafters by name, and drafters that keep the protocol badly: one named error, before any harm."""

import numpy as np
import pytest

from tinyllm import speculative
from tinyllm.errors import SettingError
from tinyllm.generation import generate
from tinyllm.sampling import RandomSampler, Sampling
from tinyllm.speculative import (
    ALL_DRAFTERS,
    DRAFTERS,
    Counters,
    EarlyExitDrafter,
    FallbackDrafter,
    ModelDrafter,
    NGramDrafter,
    SpeculativeDecoder,
    speculate,
)
from tinyllm.speculative.drafters import Proposal, RunShape, available

PROMPT = "    def __init__(self, "
EVEN = np.full(96, 1 / 96)


class Says:
    """A drafter that answers every question for a proposal with the same thing."""

    def __init__(self, proposal):
        self.proposal = proposal

    def start(self, run):
        return self

    def propose(self, sequence, k, sampler):
        return self.proposal

    def commit(self, sequence):
        pass


@pytest.mark.parametrize(
    ("proposal", "message"),
    [
        (None, "no proper Proposal: 'NoneType'"),
        (Proposal(None, []), "no proper Proposal: .*'NoneType' object is not iterable"),
        (Proposal([5, 6, 7], [EVEN] * 3), "proposed 3 tokens and was asked for 2"),
        (Proposal([5], []), r"shape \(0,\): its 1 tokens need \(1, 96\)"),
        (Proposal([5], [EVEN, EVEN]), r"shape \(2, 96\): its 1 tokens need \(1, 96\)"),
        (Proposal([5, 6], [EVEN]), r"shape \(1, 96\): its 2 tokens need \(2, 96\)"),
        (Proposal([], [EVEN]), r"shape \(1, 96\): its 0 tokens"),
        (Proposal([5], [EVEN[:50]]), r"shape \(1, 50\): its 1 tokens need \(1, 96\)"),
        (Proposal([5, 6], [EVEN, EVEN[:50]]), "no proper Proposal: "),
        (Proposal([5], EVEN), r"shape \(96,\): its 1 tokens"),
        (Proposal([5], [["a"] * 96]), "no proper Proposal: could not convert"),
        (Proposal([5], None), r"shape \(\): its 1 tokens"),
        (Proposal([96], [EVEN]), r"no proper Proposal: token id 96 is outside 0\.\.95"),
        (Proposal([-1], [EVEN]), r"no proper Proposal: token id -1 is outside 0\.\.95"),
        (Proposal([5.0], [EVEN]), "no proper Proposal: .*'float' object"),
        (Proposal([True], [EVEN]), "no proper Proposal: .*True and False"),
        (Proposal([(5,)], [EVEN]), "no proper Proposal: .*'tuple' object"),
        (Proposal([5], [EVEN * 2]), r"sum to one, not to \[2\.0"),
        (Proposal([5], [EVEN - np.eye(96)[7]]), "sum to one, not to"),
        (Proposal([5], [EVEN + np.eye(96)[7] - np.eye(96)[8]]), "hold probabilities"),
        (Proposal([5], [np.where(np.arange(96) == 7, np.nan, EVEN)]), "not to .nan"),
        (Proposal([5], [np.eye(96)[7]]), r"token 5, to which its own q gives 0\.0"),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_proposal_that_cannot_be_is_refused(target, proposal, message, temperature):
    with pytest.raises(SettingError, match=f"the drafter.*{message}"):
        next(speculate(target, Says(proposal), PROMPT, k=2, temperature=temperature))


@pytest.mark.parametrize(
    "proposal",
    [
        Proposal((5, 6), (EVEN, EVEN)),
        Proposal(np.array([5, 6]), np.stack([EVEN, EVEN]).astype(np.float32)),
        Proposal((), ()),
    ],
)
def test_tuples_and_arrays_are_as_good_as_lists(target, proposal):
    event = next(speculate(target, Says(proposal), PROMPT, k=2))
    as_lists = Proposal([int(token) for token in proposal.tokens], list(proposal.q))
    assert event == next(speculate(target, Says(as_lists), PROMPT, k=2))
    assert event.q.shape == (len(event.proposed), 96)
    assert event.q.dtype == np.float64


@pytest.mark.parametrize("drafter", ["draft", None, 3])
def test_what_is_no_drafter_is_refused(target, drafter):
    with pytest.raises(SettingError, match=r"must be a model or have a start\(\), unlike"):
        speculate(target, drafter, PROMPT)


def test_drafters_have_names(draft):
    assert isinstance(speculative.named("ngram"), NGramDrafter)
    assert speculative.named("draft").config == draft.config
    assert [speculative.named(name, load=str.upper) for name in DRAFTERS if name != "ngram"] == [
        "DRAFT"
    ]


def test_every_drafter_has_a_name_and_serves_its_target(target):
    prompt = PROMPT * 3
    assert set(available("target")) <= set(ALL_DRAFTERS)
    for name in available("target"):
        events = list(speculate(target, speculative.named(name), prompt, k=3, max_new_tokens=20))
        assert sum(len(event.tokens) for event in events) == 20
        assert Counters.of(events).proposed > 0, name


def test_the_draft_of_the_base_target_is_its_own():
    loaded = []
    for target in ("base", "target", "target-kv1"):
        speculative.named("draft", loaded.append, target)
    assert loaded == ["base-draft", "draft", "draft"]


def loop_of(target, drafter, prompt=PROMPT, temperature=0.7, seed=0, kv_dtype=None):
    tokens = target.tokenizer.encode(prompt)
    run = RunShape(512, target.config.vocab_size, Sampling(temperature), kv_dtype)
    sampler = RandomSampler(seed)
    return SpeculativeDecoder(target, drafter, tokens, run, frozenset(), sampler)


def assert_equals_a_fresh_prefill(model, cache, tokens):
    """To the rounding of float64: calls of other widths add up in another order."""
    fresh = model.new_cache("float64")
    model.forward(tokens, fresh)
    assert cache.length == fresh.length
    for held, expected in zip(cache.layers, fresh.layers, strict=True):
        for one, other in zip(held, expected, strict=True):
            gap = np.abs(one.read(cache.length) - other.read(cache.length)).max()
            assert gap <= 1e-10


def test_the_fallbacks_draft_model_misses_no_token_and_keeps_no_rejected_one(target64, draft64):
    """Whoever proposed, and whatever came of it."""
    lookup = NGramDrafter(shortest=3)
    drafter = FallbackDrafter(lookup, ModelDrafter(draft64))
    loop = loop_of(target64, drafter, PROMPT * 3, temperature=0.7)
    alone = lookup.start(RunShape(512, 96, Sampling()))
    by_lookup, closings = set(), set()
    for _ in range(40):
        alone.commit(loop.sequence)
        found = alone.propose(loop.sequence, 4, None).tokens
        event = loop.round(4)
        assert not found or list(event.proposed) == found
        by_lookup.add(bool(found))
        closings.add((bool(found), event.closing))
        assert_equals_a_fresh_prefill(draft64, loop.draft.second.cache, loop.sequence[:-1])
    assert len(closings) == 4, "both have been accepted whole, and both rejected"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("k", [1, 4])
def test_all_layers_drafting_for_themselves_accept_every_token(target64, temperature, k):
    """Early exit that never exits: fails when the shared cache lacks a position or holds one
    that is not the sequence's."""
    everything = EarlyExitDrafter(target64.config.n_layer)
    loop = loop_of(target64, everything, temperature=temperature)
    for _ in range(12):
        event = loop.round(k)
        assert (event.accepted, event.closing) == (k, "bonus")


def test_early_exit_leaves_the_targets_cache_as_verification_would(target64):
    loop = loop_of(target64, EarlyExitDrafter(2), temperature=1.0)
    closings = {loop.round(4).closing for _ in range(25)}
    assert closings == {"corrected", "bonus"}
    assert_equals_a_fresh_prefill(target64, loop.cache, loop.sequence[:-1])


@pytest.mark.parametrize("kv_dtype", ["int8", "int4_channel"])
def test_early_exit_writes_ahead_in_any_format(target, kv_dtype):
    """Keys by channel are coded block by block: writing ahead must not code them too early."""
    settings = {"max_new_tokens": 150, "temperature": 0.0, "kv_dtype": kv_dtype}
    rounds = speculate(target, EarlyExitDrafter(1), PROMPT, k=5, **settings)
    tokens = [token for event in rounds for token in event.tokens]
    plain = list(generate(target, PROMPT, **settings))
    assert tokens == [token.id for token in plain]


def test_early_exit_shares_weights_and_cache(target):
    loop = loop_of(target, EarlyExitDrafter(2))
    shallow = loop.draft.model
    assert (shallow.config.n_layer, target.config.n_layer) == (2, 4)
    for mine, others in zip(shallow._weights.blocks, target._weights.blocks, strict=False):
        assert mine is others
    assert loop.draft.cache.nbytes == 0
    for mine, others in zip(loop.draft.cache.layers, loop.cache.layers, strict=False):
        assert mine is others


@pytest.mark.parametrize("layers", [0, 5, 1.5])
def test_early_exit_after_no_layer_of_the_target_is_refused(target, layers):
    with pytest.raises(SettingError, match="first layers of the model, must be a whole number"):
        loop_of(target, EarlyExitDrafter(layers))


def test_early_exit_needs_the_target():
    with pytest.raises(SettingError, match="through speculate"):
        EarlyExitDrafter().start(RunShape(64, 96, Sampling()))
