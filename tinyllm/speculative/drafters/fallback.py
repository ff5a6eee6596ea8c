"""Two drafters in one: the first where it has something to propose, else the second.

Made for prompt lookup before a draft model: a copied stretch is proposed for nothing, and where
there is none to copy the model speaks. Both learn of every round, so that neither misses a token.
"""

from collections.abc import Sequence

from tinyllm.sampling import Sampler
from tinyllm.speculative.drafters.proposal import (
    Draft,
    Drafter,
    Footprint,
    Proposal,
    RunShape,
    footprint_of,
)


class FallbackDrafter:
    """`first` is asked for every proposal, `second` where it gives none."""

    def __init__(self, first: Drafter, second: Drafter) -> None:
        self.first = first
        self.second = second

    def start(self, run: RunShape) -> "FallbackDraft":
        """Start both."""
        return FallbackDraft(self.first.start(run), self.second.start(run))


class FallbackDraft:
    """Both drafts of one run."""

    def __init__(self, first: Draft, second: Draft) -> None:
        self.first = first
        self.second = second

    @property
    def footprint(self) -> Footprint:
        """Of both."""
        return footprint_of(self.first) + footprint_of(self.second)

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """Of one of the two. Which, only the committed sequence decides: so the law is kept."""
        proposal = self.first.propose(sequence, k, sampler)
        return proposal if proposal.tokens else self.second.propose(sequence, k, sampler)

    def commit(self, sequence: Sequence[int]) -> None:
        """Tell both."""
        self.first.commit(sequence)
        self.second.commit(sequence)
