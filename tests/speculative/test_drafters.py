"""Drafters by name, and drafters that keep the protocol badly: one named error, before any harm."""

import numpy as np
import pytest

from tinyllm import speculative
from tinyllm.errors import SettingError
from tinyllm.speculative import DRAFTERS, NGramDrafter, speculate
from tinyllm.speculative.drafters import Proposal

PROMPT = "    def __init__(self, "
EVEN = np.full(96, 1 / 96)


class Says:
    """A drafter that answers every question for a proposal with the same thing."""

    def __init__(self, proposal):
        self.proposal = proposal

    def start(self, prompt, run):
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
