"""Speculative decoding: draft k tokens, check them in one target call, keep what is accepted.

Leviathan et al., ICML 2023, Algorithm 1. One event a round. Between rounds the target's cache,
and a draft model's, hold the whole committed sequence but its last token.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tinyllm.errors import SettingError, whole_number
from tinyllm.model import Transformer
from tinyllm.prompt import Prompt, Stop, prompt_tokens, stop_tokens
from tinyllm.sampling import Distribution, RandomSampler, Sampler, Sampling
from tinyllm.speculative.acceptance import acceptance_probability, residual
from tinyllm.speculative.drafters import Drafter, ModelDrafter, Proposal, RunShape
from tinyllm.tokenizer import checked_ids

MAX_K = 64
_SUM_TOLERANCE = 1e-5  # of a drafter's q, which may have been float32


@dataclass(frozen=True, slots=True)
class Round:
    """One round: one target call.

    tokens are what it emitted: the accepted proposals, then one token that the target drew,
    `corrected` after a rejection or `bonus` after full acceptance. A stop token among the
    accepted ones ends the run there, and nothing is drawn (`stopped`).
    """

    position: int  # of its first token in the sequence, prompt included
    proposed: tuple[int, ...]
    accepted: int  # emitted proposals; what follows a rejection or a stop does not count
    tested: int  # proposals on which the acceptance rule was asked
    tokens: tuple[int, ...]
    closing: Literal["corrected", "bonus", "stopped"]
    p: Distribution = field(compare=False)  # (len(proposed) + 1, V), the target's
    q: Distribution = field(compare=False)  # (len(proposed), V), the drafter's
    target_cache_peak: int  # tokens the target's cache held after the call, rejected ones too
    target_cache_length: int  # and holds when the round is over


def speculate(
    target: Transformer,
    drafter: Drafter | Transformer,
    prompt: Prompt,
    *,
    k: int = 4,
    max_new_tokens: int = 96,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    stop: Stop = (),
    kv_dtype: str | None = None,
    sampler: Sampler | None = None,
) -> Iterator[Round]:
    """Rounds that together emit the tokens following a prompt, with the target's own law.

    A round proposes at most k tokens, fewer near the end of max_new_tokens, so a run makes
    exactly max_new_tokens tokens unless a stop token ends it. `sampler` replaces the seeded
    one. Raises, before the first round, TokenError, SettingError or ContextOverflowError.
    """
    k = whole_number(k, "k, the proposals per round,", 1, MAX_K)
    tokens = prompt_tokens(prompt, target, max_new_tokens)
    stops = stop_tokens(stop, target)
    run = RunShape(
        capacity=len(tokens) + max_new_tokens,
        vocab_size=target.config.vocab_size,
        sampling=Sampling(temperature, top_k, top_p),
    )
    if isinstance(drafter, Transformer):
        drafter = ModelDrafter(drafter, kv_dtype)
    decoder = SpeculativeDecoder(
        target, drafter, tokens, run, stops, sampler or RandomSampler(seed), kv_dtype
    )

    def rounds() -> Iterator[Round]:
        end = len(tokens) + max_new_tokens
        while len(decoder.sequence) < end:
            # The target's own token takes one place of those left.
            room = end - len(decoder.sequence) - 1
            event = decoder.round(min(k, room))
            yield event
            if event.tokens[-1] in stops:
                return

    return rounds()


class SpeculativeDecoder:
    """The state of one run: the committed sequence, the target's cache and the draft."""

    def __init__(
        self,
        target: Transformer,
        drafter: Drafter,
        prompt: list[int],
        run: RunShape,
        stops: frozenset[int],
        sampler: Sampler,
        kv_dtype: str | None = None,
    ) -> None:
        self.sequence = list(prompt)
        self.cache = target.new_cache(kv_dtype, run.capacity)
        if not callable(getattr(drafter, "start", None)):
            raise SettingError(f"the drafter must be a model or have a start(), unlike {drafter!r}")
        self.draft = drafter.start(prompt, run)
        self._target = target
        self._vocab_size = run.vocab_size
        self._sampling = run.sampling
        self._stops = stops
        self._sampler = sampler
        if len(prompt) > 1:
            target.forward(prompt[:-1], self.cache, rows=0)

    def round(self, k: int) -> Round:
        """Propose, verify in one target call, commit. k = 0 is a plain step."""
        position = len(self.sequence)
        proposal = self.draft.propose(self.sequence, k, self._sampler) if k else Proposal([], [])
        proposed, q = checked_proposal(proposal, k, self._vocab_size)
        logits = self._target.forward([self.sequence[-1], *proposed], self.cache)
        p = self._sampling.distribution(logits)  # (len(proposed) + 1, V)
        accepted, tested = self._accept(proposed, q, p)
        tokens = proposed[:accepted]
        closing: Literal["corrected", "bonus", "stopped"]
        if tokens and tokens[-1] in self._stops:
            closing = "stopped"
        elif accepted < len(proposed):
            closing = "corrected"
            tokens.append(self._sampler.draw(residual(p[accepted], q[accepted])))
        else:
            closing = "bonus"
            tokens.append(self._sampler.draw(p[accepted]))
        self.sequence += tokens
        # The call fed the last token and every proposal; what was rejected is forgotten.
        peak = self.cache.length
        self.cache.truncate(min(peak, len(self.sequence) - 1))
        self.draft.commit(self.sequence)
        return Round(
            position=position,
            proposed=tuple(proposed),
            accepted=accepted,
            tested=tested,
            tokens=tuple(tokens),
            closing=closing,
            p=p,
            q=q,
            target_cache_peak=peak,
            target_cache_length=self.cache.length,
        )

    def _accept(self, proposed: list[int], q: Distribution, p: Distribution) -> tuple[int, int]:
        """How many proposals are accepted, and how many were tested: up to the first
        rejection, or to an accepted stop token."""
        for i, token in enumerate(proposed):
            if not self._sampler.accept(acceptance_probability(p[i], q[i], token)):
                return i, i + 1
            if token in self._stops:
                return i + 1, i + 1
        return len(proposed), len(proposed)


def checked_proposal(proposal: Proposal, k: int, vocab_size: int) -> tuple[list[int], Distribution]:
    """The tokens of a proposal and their q (len(tokens), V), from any drafter whatsoever.

    SettingError says what is wrong: the exactness of speculative decoding rests on these.
    """
    try:
        tokens = checked_ids(proposal.tokens, vocab_size)
        q = np.array(proposal.q, np.float64)
    except (AttributeError, TypeError, ValueError) as error:
        raise SettingError(f"the drafter gave no proper Proposal: {error}") from error
    if len(tokens) > k:
        raise SettingError(f"the drafter proposed {len(tokens)} tokens and was asked for {k}")
    if not tokens and not q.size:
        return tokens, q.reshape(0, vocab_size)
    if q.shape != (len(tokens), vocab_size):
        raise SettingError(
            f"the drafter's q has the shape {q.shape}: its {len(tokens)} tokens need "
            f"{(len(tokens), vocab_size)}, a distribution each"
        )
    for i, token in enumerate(tokens):
        if not q[i, token] > 0:  # nan too; the rule would accept it
            raise SettingError(
                f"the drafter proposed token {token}, to which its own q gives {q[i, token]}"
            )
    sums = q.sum(axis=1).tolist()
    if not (q.min() >= 0 and all(abs(total - 1) <= _SUM_TOLERANCE for total in sums)):
        raise SettingError(
            f"the drafter's q must hold probabilities that sum to one, not to {sums}"
        )
    return tokens, q
