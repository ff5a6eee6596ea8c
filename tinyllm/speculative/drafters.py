"""Drafters: what proposes the tokens that the target then checks.

A Drafter holds what is shared between runs (a model); start() gives the state of one run. A
draft sees only the committed sequence, so a rejected token never reaches the next proposal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tinyllm.errors import SettingError
from tinyllm.loading import load_model
from tinyllm.model import Transformer
from tinyllm.sampling import Distribution, Sampler, Sampling

DRAFTERS = ("draft", "ngram")  # by name: the shipped draft model, and prompt lookup


@dataclass(frozen=True, slots=True)
class Proposal:
    """Up to k tokens and, for each, the distribution it was drawn from."""

    tokens: list[int]
    q: list[Distribution] = field(compare=False)  # one (V,) a token


@dataclass(frozen=True, slots=True)
class RunShape:
    """What a draft must know of the run it serves."""

    capacity: int  # the sequence never holds more tokens
    vocab_size: int  # V of the target
    sampling: Sampling  # applies to q as it does to p


class Draft(Protocol):
    """The state of one run."""

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """At most k tokens to follow the committed sequence; none is allowed."""

    def commit(self, sequence: Sequence[int]) -> None:
        """Learn what was decided: the committed sequence, one token or more longer."""


class Drafter(Protocol):
    """What can start a draft."""

    def start(self, prompt: Sequence[int], run: RunShape) -> Draft:
        """The state of one run, which has seen the prompt."""


class ModelDrafter:
    """A smaller model of the same alphabet drafts, with a KV cache of its own."""

    def __init__(self, model: Transformer, kv_dtype: str | None = None) -> None:
        self.model = model
        self.kv_dtype = kv_dtype

    def start(self, prompt: Sequence[int], run: RunShape) -> "ModelDraft":
        """Prefill the prompt but its last token."""
        if self.model.config.vocab_size != run.vocab_size:
            raise SettingError(
                f"{self.model.name} has {self.model.config.vocab_size} symbols and the target "
                f"{run.vocab_size}: a drafter needs the target's alphabet"
            )
        return ModelDraft(self.model, self.kv_dtype, prompt, run)


class ModelDraft:
    """The draft model in one run.

    Between rounds its cache holds the whole committed sequence but the last token, exactly as
    the target's does, whatever was accepted.
    """

    def __init__(
        self, model: Transformer, kv_dtype: str | None, prompt: Sequence[int], run: RunShape
    ) -> None:
        self._model = model
        self._sampling = run.sampling
        self._fed: list[int] = []  # the tokens whose keys and values the cache holds
        self._agreed = 0  # how many of them are known to be committed
        self.cache = model.new_cache(kv_dtype, min(run.capacity, model.config.context_length))
        self.commit(prompt)

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """k draws, each fed back; fewer where the draft model's own context ends."""
        proposal = Proposal([], [])
        token = sequence[-1]
        for _ in range(min(k, self.cache.capacity - self.cache.length)):
            logits = self._model.forward([token], self.cache)[0]
            self._fed.append(token)
            q = self._sampling.distribution(logits)
            token = sampler.draw(q)
            proposal.tokens.append(token)
            proposal.q.append(q)
        return proposal

    def commit(self, sequence: Sequence[int]) -> None:
        """Drop rejected tokens; feed what was committed and not yet fed.

        After full acceptance that is the last proposed token, which was drawn and never fed:
        without it the cache would lack a position and acceptance would collapse.
        """
        wanted = sequence[: min(len(sequence) - 1, self.cache.capacity)]
        while self._agreed < min(len(self._fed), len(wanted)) and (
            self._fed[self._agreed] == wanted[self._agreed]
        ):
            self._agreed += 1
        self.cache.truncate(self._agreed)
        del self._fed[self._agreed :]
        missing = list(wanted[self._agreed :])
        if missing:
            self._model.forward(missing, self.cache, rows=0)
            self._fed += missing
            self._agreed = len(self._fed)


class NGramDrafter:
    """Prompt lookup (Saxena 2023): propose what followed the same n-gram earlier.

    The longest suffix of the sequence, from `longest` down to `shortest` tokens, that occurs
    earlier in prompt or output; its latest occurrence wins. q is one-hot: the proposal is
    certain, so a rejected position is drawn from p without the proposed token.
    """

    def __init__(self, longest: int = 8, shortest: int = 2) -> None:
        if not 1 <= shortest <= longest:
            raise SettingError(
                f"n-gram lengths need 1 <= shortest <= longest, not {shortest} and {longest}"
            )
        self.longest = longest
        self.shortest = shortest

    def start(self, prompt: Sequence[int], run: RunShape) -> "NGramDraft":
        """Index the prompt."""
        return NGramDraft(self.longest, self.shortest, prompt, run)


class NGramDraft:
    """The index of one run: for each n-gram, where the token after its latest place stands."""

    def __init__(self, longest: int, shortest: int, prompt: Sequence[int], run: RunShape) -> None:
        self._lengths = range(longest, shortest - 1, -1)
        self._vocab_size = run.vocab_size
        self._follower: dict[tuple[int, ...], int] = {}
        self._indexed = 1  # n-grams that end at or before this token have been seen
        self.commit(prompt)

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """The tokens after the latest occurrence of the longest suffix, k or none.

        Where the copied stretch reaches the end of the sequence it goes on with its own copy,
        so a run of spaces or a repeated line is proposed whole.
        """
        for n in self._lengths:
            place = self._follower.get(tuple(sequence[-n:]))
            if place is not None:
                period = len(sequence) - place
                tokens = [sequence[place + i % period] for i in range(k)]
                return Proposal(tokens, [self._one_hot(token) for token in tokens])
        return Proposal([], [])

    def commit(self, sequence: Sequence[int]) -> None:
        """Index the n-grams that end before the last token: only they have a follower."""
        for end in range(self._indexed, len(sequence)):
            for n in self._lengths:
                if n <= end:
                    self._follower[tuple(sequence[end - n : end])] = end
        self._indexed = max(self._indexed, len(sequence))

    def _one_hot(self, token: int) -> Distribution:
        q = np.zeros(self._vocab_size)
        q[token] = 1.0
        return q


def named(name: str, load: Callable[[str], Transformer] = load_model) -> Drafter | Transformer:
    """A drafter by name: "ngram" is prompt lookup, all else a model that `load` finds."""
    return NGramDrafter() if name == "ngram" else load(name)
