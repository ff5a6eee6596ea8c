"""Verification of a tree: several candidates for a place, all checked in one target call.

The tree is a comb. Its spine is what the drafter proposed; beside each proposal stand siblings,
drawn from the same q without putting back what was drawn. Where a proposal is rejected its
siblings are tried in turn, each against what is left of p (recursive rejection sampling:
Jeon et al. 2024, arXiv 2402.14160; Miao et al. 2024, SpecInfer, arXiv 2305.09781): the law stays
the target's. At temperature 0, where q knows one token, the siblings are the next likeliest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tinyllm.attention import LARGEST_TREE, Tree
from tinyllm.errors import SettingError
from tinyllm.layers import Array
from tinyllm.model import Transformer
from tinyllm.sampling import Distribution, Sampler, certain
from tinyllm.speculative.acceptance import acceptance_probability, residual, without
from tinyllm.speculative.decoding import Round, SpeculativeDecoder
from tinyllm.speculative.drafters import Drafter, Proposal, RunShape

MAX_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token for one place, and the law it was drawn from when it was drawn."""

    token: int
    q: Distribution


def chosen(
    candidates: Sequence[Candidate], p: Distribution, sampler: Sampler
) -> tuple[int | None, Distribution]:
    """Which candidate becomes the token at a place with the law p: its index, or None.

    With None the token is to be drawn from the distribution returned, what all the rejections
    leave of p.
    """
    for index, candidate in enumerate(candidates):
        if sampler.accept(acceptance_probability(p, candidate.q, candidate.token)):
            return index, p
        p = residual(p, candidate.q)
    return None, p


def siblings(first: Candidate, more: int, sampler: Sampler) -> list[Candidate]:
    """At most `more` draws after the first from its q, none of them twice."""
    found, last = [], first
    for _ in range(more):
        rest = without(last.q, last.token)
        if rest is None:
            break
        last = Candidate(sampler.draw(rest), rest)
        found.append(last)
    return found


def next_likeliest(first: Candidate, more: int, logits: Array) -> list[Candidate]:
    """The `more` likeliest tokens but the first, each certain: what a tree tries greedily."""
    order = np.argsort(-logits, kind="stable")
    tokens = order[order != first.token][:more].tolist()
    return [Candidate(token, certain(token, len(logits))) for token in tokens]


class TreeDecoder(SpeculativeDecoder):
    """A run whose calls check `width` candidates for every place of the spine."""

    extra_rows = LARGEST_TREE

    def __init__(
        self,
        target: Transformer,
        drafter: Drafter,
        prompt: list[int],
        run: RunShape,
        stops: frozenset[int],
        sampler: Sampler,
        verify: str = "token",
        width: int = 2,
    ) -> None:
        """SettingError for what a tree does not go with."""
        if verify != "token":
            raise SettingError(f'a tree is judged token by token: leave out verify="{verify}"')
        self._width = width
        super().__init__(target, drafter, prompt, run, stops, sampler)
        if self.cache.call_ends is not None:
            raise SettingError(f"trees need keys without scales by channel, unlike {run.kv_dtype}")

    def verify(self, proposed: list[int], q: Distribution, proposal: Proposal) -> Round:
        """One target call on the comb, the spine first, and what it makes of it."""
        position, start, spine = len(self.sequence), self.cache.length, len(proposed)
        places = [[Candidate(*pair)] for pair in zip(proposed, q, strict=True)]
        # What the cache and the largest tree still hold, the root and the spine taken off.
        room = min(LARGEST_TREE, self.cache.capacity - start) - 1 - spine
        tokens, parents = [self.sequence[-1], *proposed], list(range(-1, spine))
        rows = [[depth + 1] for depth in range(spine)]  # of each candidate
        for depth, place in enumerate(places):
            beside = self._beside(place[0], min(self._width - 1, room), proposal.logits[depth:])
            room -= len(beside)
            rows[depth] += range(len(tokens), len(tokens) + len(beside))
            place += beside
            tokens += [one.token for one in beside]
            parents += [depth] * len(beside)
        p = self._sampling.distribution(self._call(tokens, tree=Tree.of(parents)))
        peak = self.cache.length

        branch, made, tested = [0], [], 0  # rows of the call, and the tokens they stand for
        closing: Literal["corrected", "bonus", "stopped"] = "bonus"
        law = p[0]
        for place, those in zip(places, rows, strict=True):
            tested += 1
            index, law = chosen(place, p[branch[-1]], self._sampler)
            if index is None:
                closing = "corrected"
                break
            branch.append(those[index])
            made.append(place[index].token)
            law = p[branch[-1]]
            if made[-1] in self._stops:
                closing = "stopped"
                break
            if index:  # a sibling has no children
                break
        if closing != "stopped":
            made.append(self._sampler.draw(law))
        self.sequence += made
        self._show(branch[-1])
        # A stop token is the sequence's last, which the cache does not hold yet.
        self.cache.keep(start, branch[:-1] if closing == "stopped" else branch)
        return Round(
            position=position,
            proposed=tuple(proposed),
            accepted=len(branch) - 1,
            tested=tested,
            tokens=tuple(made),
            closing=closing,
            p=p[: spine + 1],
            q=q,
            target_cache_peak=peak,
            target_cache_length=self.cache.length,
            siblings=tuple(tuple(one.token for one in place[1:]) for place in places),
        )

    def _beside(self, first: Candidate, more: int, logits: Sequence[Array]) -> list[Candidate]:
        if self._sampling.temperature == 0:
            return next_likeliest(first, more, logits[0]) if logits else []
        return siblings(first, more, self._sampler)
