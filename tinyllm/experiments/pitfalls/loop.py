"""The speculative loop once more, in steps small enough to get wrong one at a time.

Right as it stands (a test holds it to the engine's tokens); each fault in rounds.py overrides one
step. It borrows the engine's models, caches and rule, and nothing of its loop.
"""

from collections.abc import Sequence

from tinyllm.errors import TinyllmError
from tinyllm.experiments.pitfalls.record import Bench
from tinyllm.model import Transformer
from tinyllm.sampling import Distribution, RandomSampler, Sampler, Sampling
from tinyllm.speculative.acceptance import acceptance_probability, residual


class Loop:
    """One run at a temperature. Between rounds both caches hold all but the last token."""

    def __init__(
        self,
        bench: Bench,
        draft: Transformer,
        *,
        temperature: float = 0.0,
        stops: Sequence[int] = (),
        sampler: Sampler | None = None,
    ) -> None:
        self.sequence = bench.prompt_tokens
        self.stops = stops
        self.proposed: list[int] = []
        self.accepted = self.tested = 0  # of the whole run
        self._models = bench.target, draft
        self._sampling = Sampling(temperature)
        self._sampler = sampler or RandomSampler(bench.seed)
        self.target_cache, self.draft_cache = (model.new_cache() for model in self._models)
        for model, cache in zip(self._models, (self.target_cache, self.draft_cache), strict=True):
            if len(self.sequence) > 1:
                model.forward(self.sequence[:-1], cache, rows=0)

    def run(self, new_tokens: int, ks: Sequence[int]) -> str:
        """Rounds of k = ks[0], ks[1], ... and over again; why the run ended.

        A fault may fill a cache with what should not be there; that ends the run too.
        """
        end, number = len(self.sequence) + new_tokens, 0
        while True:
            before = len(self.sequence)
            try:
                self.round(min(ks[number % len(ks)], end - before - 1))
            except TinyllmError as error:
                return str(error)
            reason = self.finish(before, end)
            if reason:
                return reason
            number += 1

    def round(self, k: int) -> None:
        """Propose, verify, accept, correct, forget."""
        target, draft = self._models
        self.proposed, qs = [], []
        token = self.sequence[-1]
        for _ in range(k):
            qs.append(self._sampling.distribution(draft.forward([token], self.draft_cache)[0]))
            token = self._sampler.draw(qs[-1])
            self.proposed.append(token)
        logits = target.forward([self.sequence[-1], *self.proposed], self.target_cache)
        p = self._sampling.distribution(logits)
        n = self.count_accepted(p, qs)
        self.accepted += n
        rest = residual(p[n], qs[n]) if n < len(self.proposed) else p[n]
        self.sequence += [*self.proposed[:n], self._sampler.draw(rest)]
        self.rewind_target()
        self.catch_up_draft()

    def verdict(self, p: Distribution, q: Distribution, token: int) -> bool:
        """The acceptance rule on one proposal."""
        self.tested += 1
        return self._sampler.accept(acceptance_probability(p, q, token))

    def count_accepted(self, p: Distribution, q: Sequence[Distribution]) -> int:
        """Proposals up to the first refusal; p is (k + 1, V)."""
        for n, token in enumerate(self.proposed):
            if not self.verdict(p[n], q[n], token):
                return n
        return len(self.proposed)

    def rewind_target(self) -> None:
        """Forget the keys and values of refused proposals."""
        self.target_cache.truncate(len(self.sequence) - 1)

    def catch_up_draft(self) -> None:
        """The same for the draft, and feed what it has not been fed: after full acceptance the
        last proposal, after a round without proposals the one token."""
        cache, wanted = self.draft_cache, len(self.sequence) - 1
        cache.truncate(min(cache.length, wanted))
        if cache.length < wanted:
            self._models[1].forward(self.sequence[cache.length : wanted], cache, rows=0)

    def finish(self, before: int, end: int) -> str:
        """Why the run ends with this round, whose tokens stand from `before` on; "" if not."""
        for place in range(before, len(self.sequence)):
            if self.sequence[place] in self.stops:
                del self.sequence[place + 1 :]
                return "stop"
        return "length" if len(self.sequence) >= end else ""
