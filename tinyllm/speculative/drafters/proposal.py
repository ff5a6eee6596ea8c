"""What a drafter is, and what it and the loop tell each other.

A Drafter holds what is shared between runs (a model); start() gives the state of one run. A
draft sees only the committed sequence, so a rejected token never reaches the next proposal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tinyllm.cache import KVCache
from tinyllm.layers import Array
from tinyllm.model import Transformer
from tinyllm.sampling import Distribution, Sampler, Sampling


@dataclass(frozen=True, slots=True)
class Proposal:
    """Up to k tokens and, for each, the distribution it was drawn from."""

    tokens: list[int]
    q: list[Distribution] = field(compare=False)  # one (V,) a token
    # What q is made of, one (V,) a token, or nothing: at temperature 0 trees branch by it.
    logits: list[Array] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class RunShape:
    """What a draft must know of the run it serves. The loop fills in target and cache."""

    capacity: int  # the sequence never holds more tokens
    vocab_size: int  # V of the target
    sampling: Sampling  # applies to q as it does to p
    kv_dtype: str | None = None  # of the caches; None: what each model computes in
    target: Transformer | None = None
    cache: KVCache | None = None  # the target's


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes that a draft holds beside what the target holds anyway."""

    weights: int = 0
    state: int = 0  # its KV cache, or its text

    def __add__(self, other: "Footprint") -> "Footprint":
        return Footprint(self.weights + other.weights, self.state + other.state)


class Draft(Protocol):
    """The state of one run. Those that ship also tell their `footprint`.

    One that has observe(hidden, position) is shown, after every call of the target, the hidden
    state (C + 1,) from which the token at `position`, the last of the sequence, was drawn. One
    whose proposals are all certain, q(x) = 1, may have foresee(sequence, k), the tokens that it
    would propose, at most k: where a try is dear, auto k watches what would have been kept before
    it drafts. It comes without a commit(), and may come before the first.
    """

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """At most k tokens to follow the committed sequence; none is allowed."""

    def commit(self, sequence: Sequence[int]) -> None:
        """Learn what was decided: the committed sequence, some tokens longer. It comes before the
        first proposal, with all there is by then: a draft that is never asked reads nothing."""


class Drafter(Protocol):
    """What can start a draft."""

    def start(self, run: RunShape) -> Draft:
        """The state of one run, which has seen nothing yet."""


def footprint_of(draft: Draft) -> Footprint:
    """What a draft holds; nothing for one that does not tell."""
    found: Footprint = getattr(draft, "footprint", Footprint())
    return found


def draw_in_turn(
    model: Transformer, cache: KVCache, token: int, k: int, sampling: Sampling, sampler: Sampler
) -> Proposal:
    """k draws of a model, each fed back; fewer where the cache ends. The first token is fed too.

    All but the last drawn token are in the cache afterwards.
    """
    proposal = Proposal([], [])
    for _ in range(min(k, cache.capacity - cache.length)):
        logits = model.forward([token], cache)[0]
        q = sampling.distribution(logits)
        token = sampler.draw(q)
        proposal.tokens.append(token)
        proposal.q.append(q)
        proposal.logits.append(logits)
    return proposal
