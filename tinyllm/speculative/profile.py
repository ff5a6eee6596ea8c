"""How often a drafter is right along a text: what a run at any k may be expected to do.

A text x that was drawn from the target decides nothing about what a drafter would have proposed
on the way, but it decides how likely: a proposal is x_i and accepted with probability
min(p, q)(x_i), so given that x_i is what came out, it came by acceptance with min(1, q / p)(x_i),
independently of all other places. One pass along the text so gives the rounds of every k.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tinyllm.model import Transformer
from tinyllm.prompt import Prompt, prompt_tokens
from tinyllm.sampling import Distribution, Sampling
from tinyllm.speculative.costs import Costs
from tinyllm.speculative.decoding import SpeculativeDecoder
from tinyllm.speculative.drafters import Drafter, ModelDrafter, RunShape

MOST = 8  # proposals of a round


@dataclass(frozen=True, slots=True)
class Expected:
    """What a run at one k is expected to do while it makes a text."""

    tokens: int
    rounds_of: tuple[float, ...]  # by the number of proposals, from 0 on
    kept_all: float  # rounds that had proposals and kept them all
    tested_at: tuple[float, ...]  # by place of the proposal in its round
    accepted_at: tuple[float, ...]

    @property
    def rounds(self) -> float:
        """Target calls."""
        return sum(self.rounds_of)

    @property
    def proposed(self) -> float:
        """Proposals of all rounds."""
        return sum(n * rounds for n, rounds in enumerate(self.rounds_of))

    @property
    def tokens_per_call(self) -> float:
        """Tokens of a round."""
        return self.tokens / self.rounds

    def steps(self, costs: Costs) -> float:
        """What it costs."""
        rounds = sum(costs.round(n) * rounds for n, rounds in enumerate(self.rounds_of))
        return rounds + costs.catch_up * self.kept_all

    @property
    def alpha(self) -> float | None:
        """accepted / tested; None where nothing is proposed."""
        tested = sum(self.tested_at)
        return sum(self.accepted_at) / tested if tested else None

    @property
    def conditional(self) -> tuple[float | None, ...]:
        """By place: accepted once it was reached."""
        pairs = zip(self.accepted_at, self.tested_at, strict=True)
        return tuple(accepted / tested if tested else None for accepted, tested in pairs)


@dataclass(frozen=True, slots=True)
class Profile:
    """A drafter along one text of N tokens."""

    kept: NDArray[np.float64]  # (N, K): proposal i of a round at token t, if it is tested
    proposed: tuple[int, ...]  # how many the drafter has at token t, of K

    def run(self, k: int) -> Expected:
        """Rounds of at most k proposals: which begin where, with what probability."""
        n = len(self.proposed)
        begins = np.zeros(n + 1)  # a round
        begins[0] = 1.0
        rounds_of, tested, accepted = np.zeros(k + 1), np.zeros(k), np.zeros(k)
        kept_all = 0.0
        for t in range(n):
            share = float(begins[t])
            m = min(k, self.proposed[t], n - t - 1)  # the target's own token takes a place
            survival = np.concatenate([[1.0], self.kept[t, :m].cumprod()])  # of 0..m proposals
            rounds_of[m] += share
            tested[:m] += share * survival[:-1]
            accepted[:m] += share * survival[1:]
            if m:
                kept_all += share * float(survival[-1])
            # j accepted, and one token more: the next round begins behind them.
            begins[t + 1 : t + m + 1] += share * (survival[:-1] - survival[1:])
            begins[t + m + 1] += share * survival[-1]
        return Expected(
            n,
            tuple(rounds_of.tolist()),
            kept_all,
            tuple(tested.tolist()),
            tuple(accepted.tolist()),
        )


def profile(
    target: Transformer,
    drafter: Drafter | Transformer,
    prompt: Prompt,
    text: Sequence[int],
    sampling: Sampling,
    kv_dtype: str | None = None,
    most: int = MOST,
) -> Profile:
    """Of a drafter along a text that the target has drawn with this sampling behind a prompt."""
    tokens = prompt_tokens(prompt, target, len(text))
    if isinstance(drafter, Transformer):
        drafter = ModelDrafter(drafter)
    run = RunShape(len(tokens) + len(text), target.config.vocab_size, sampling, kv_dtype)
    dictated = _Dictated(text)
    decoder = SpeculativeDecoder(target, drafter, tokens, run, frozenset(), dictated)
    q = np.zeros((len(text), most))  # of the text's own token, as proposal i at token t
    p = np.zeros(len(text))
    proposed = []
    for t, token in enumerate(text):
        dictated.at = t
        decoder.catch_up()
        proposal = decoder.draft.propose(decoder.sequence, min(most, len(text) - t), dictated)
        proposed.append(len(proposal.tokens))
        for i, law in enumerate(proposal.q):
            q[t, i] = law[text[t + i]]
        dictated.at = t
        p[t] = decoder.step().p[0, token]
    beyond = np.ones(most)  # p behind the text, where q is 0
    later = np.lib.stride_tricks.sliding_window_view(np.concatenate([p, beyond]), most)
    kept = np.minimum(1, q / later[: len(text)])  # (N, K)
    return Profile(kept, tuple(proposed))


@dataclass(slots=True)
class _Dictated:
    """A sampler that draws a given text, whatever the law."""

    text: Sequence[int]
    at: int = field(default=0)

    def draw(self, p: Distribution) -> int:
        """The next token of the text."""
        self.at += 1
        return self.text[self.at - 1]

    def accept(self, probability: float) -> bool:
        """Never asked: no proposal is judged."""
        raise NotImplementedError
