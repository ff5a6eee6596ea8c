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

MAX_K = 64


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
    target_cache_length: int  # tokens the target's cache holds when the round is over


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
    tokens = prompt_tokens(prompt, target.config, max_new_tokens)
    stops = stop_tokens(stop, target.config)
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
        self.draft = drafter.start(prompt, run)
        self._target = target
        self._sampling = run.sampling
        self._stops = stops
        self._sampler = sampler
        if len(prompt) > 1:
            target.forward(prompt[:-1], self.cache, rows=0)

    def round(self, k: int) -> Round:
        """Propose, verify in one target call, commit. k = 0 is a plain step."""
        position = len(self.sequence)
        proposal = self.draft.propose(self.sequence, k, self._sampler) if k else Proposal([], [])
        logits = self._target.forward([self.sequence[-1], *proposal.tokens], self.cache)
        p = self._sampling.distribution(logits)  # (len(proposed) + 1, V)
        accepted, tested = self._accept(proposal, p)
        tokens = proposal.tokens[:accepted]
        closing: Literal["corrected", "bonus", "stopped"]
        if tokens and tokens[-1] in self._stops:
            closing = "stopped"
        elif accepted < len(proposal.tokens):
            closing = "corrected"
            tokens.append(self._sampler.draw(residual(p[accepted], proposal.q[accepted])))
        else:
            closing = "bonus"
            tokens.append(self._sampler.draw(p[accepted]))
        self.sequence += tokens
        # The call fed the last token and every proposal; what was rejected is forgotten.
        self.cache.truncate(min(self.cache.length, len(self.sequence) - 1))
        self.draft.commit(self.sequence)
        return Round(
            position=position,
            proposed=tuple(proposal.tokens),
            accepted=accepted,
            tested=tested,
            tokens=tuple(tokens),
            closing=closing,
            p=p,
            q=np.array(proposal.q).reshape(len(proposal.tokens), p.shape[1]),
            target_cache_length=self.cache.length,
        )

    def _accept(self, proposal: Proposal, p: Distribution) -> tuple[int, int]:
        """How many proposals are accepted, and how many were tested: up to the first
        rejection, or to an accepted stop token."""
        for i, (token, q) in enumerate(zip(proposal.tokens, proposal.q, strict=True)):
            if not q[token] > 0:  # nan too; the rule would accept it
                raise SettingError(
                    f"the drafter proposed token {token}, to which its own q gives {q[token]}"
                )
            if not self._sampler.accept(acceptance_probability(p[i], q, token)):
                return i, i + 1
            if token in self._stops:
                return i + 1, i + 1
        return len(proposal.tokens), len(proposal.tokens)
