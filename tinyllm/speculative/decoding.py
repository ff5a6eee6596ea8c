"""Speculative decoding: draft k tokens, check them in one target call, keep what is accepted.

Leviathan et al., ICML 2023, Algorithm 1. One event a round. The first one reads the prompt; from
then on the target's cache holds the whole committed sequence but its last token, and so does a
draft model's. A draft that is not asked reads nothing, neither the prompt nor what plain steps
make, and catches up when it is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tinyllm.attention import Tree
from tinyllm.errors import SettingError
from tinyllm.layers import Array
from tinyllm.model import Transformer
from tinyllm.sampling import Distribution, Sampler
from tinyllm.speculative.drafters import Drafter, Proposal, RunShape
from tinyllm.speculative.verification import all_certain, by_drawing, rule_named
from tinyllm.tokenizer import checked_ids

Foresee = Callable[[list[int], int], list[int]]

_TOO_MANY = "the drafter proposed {n} tokens and was asked for {k}"
_SUM_TOLERANCE = 1e-5  # of a drafter's q, which may have been float32


@dataclass(slots=True)  # not frozen: 11 fields cost up to a fiftieth of a short step
class Round:
    """One round: one target call, and in the first round the prompt.

    tokens are what it emitted: the accepted proposals, then one token that the target drew,
    `corrected` after a rejection or `bonus` after full acceptance. A stop token among the
    accepted ones ends the run there, and nothing is drawn (`stopped`).
    """

    position: int  # of its first token in the sequence, prompt included
    proposed: tuple[int, ...]
    accepted: int  # emitted proposals; what follows a rejection or a stop does not count
    tested: int  # proposals that were judged: the accepted ones, and one that was not
    tokens: tuple[int, ...]
    closing: Literal["corrected", "bonus", "stopped"]
    p: Distribution = field(compare=False)  # (len(proposed) + 1, V), the target's
    q: Distribution = field(compare=False)  # (len(proposed), V), the drafter's
    target_cache_peak: int  # tokens the target's cache held after the call, rejected ones too
    target_cache_length: int  # and holds when the round is over
    siblings: tuple[tuple[int, ...], ...] = ()  # of each proposal, in a tree; see tree.py


class SpeculativeDecoder:
    """The state of one run: the committed sequence, the target's cache and the draft."""

    extra_rows = 0  # of a call, beyond those that may be committed

    def __init__(
        self,
        target: Transformer,
        drafter: Drafter,
        prompt: list[int],
        run: RunShape,
        stops: frozenset[int],
        sampler: Sampler,
        verify: str = "token",
    ) -> None:
        self.sequence = list(prompt)
        room = min(run.capacity + self.extra_rows, target.config.context_length)
        self.cache = target.new_cache(run.kv_dtype, room)
        if not callable(getattr(drafter, "start", None)):
            raise SettingError(f"the drafter must be a model or have a start(), unlike {drafter!r}")
        run = replace(run, target=target, cache=self.cache)
        self.draft = drafter.start(run)
        self.target = target
        self._vocab_size = run.vocab_size
        self._sampling = run.sampling
        self._stops = stops
        self._sampler = sampler
        self._judge = rule_named(verify)
        self._behind = True  # whether the draft has tokens to read before it can propose
        self._nothing: Distribution = np.empty((0, run.vocab_size))
        # A draft whose proposals are certain may tell them without their laws.
        self._foresee: Foresee | None = getattr(self.draft, "foresee", None)
        # A draft may read the target's hidden states; for all others none are kept.
        self._observe: Callable[[Array, int], None] | None = getattr(self.draft, "observe", None)

    def round(self, k: int) -> Round:
        """Propose, verify in one target call, commit. k = 0 is a plain step the draft sees."""
        self.catch_up()
        proposal = self.draft.propose(self.sequence, k, self._sampler) if k else Proposal([], [])
        proposed, q = checked_proposal(proposal, k, self._vocab_size)
        event = self.verify(proposed, q, proposal) if proposed else self.step()
        self.draft.commit(self.sequence)
        self._behind = False
        return event

    @property
    def certain(self) -> bool:
        """Whether the draft can foresee, as all its proposals are certain."""
        return self._foresee is not None

    def foresee(self, k: int) -> list[int]:
        """What the draft would propose, if its proposals are certain; it is told of nothing."""
        tokens = self._foresee(self.sequence, k) if self._foresee and k else []
        if len(tokens) > k:
            raise SettingError(_TOO_MANY.format(n=len(tokens), k=k))
        return tokens

    def catch_up(self) -> None:
        """Be ready for proposals: target and draft have read all that comes before them."""
        unread = self.sequence[self.cache.length : -1]  # the prompt, before the first call
        if unread:
            self.target.forward(unread, self.cache, rows=0)
        if self._behind:
            self.draft.commit(self.sequence)
            self._behind = False

    def step(self) -> Round:
        """A round without proposals, which the draft is not told of."""
        return next(self.steps(1))

    def steps(self, n: int) -> Iterator[Round]:
        """n rounds without proposals, or fewer up to a stop token."""
        # As lean as generate()'s loop, which auto k is measured against.
        sequence, stops, cache, observe = self.sequence, self._stops, self.cache, self._observe
        forward, distribution = self.target.forward, self._sampling.distribution
        draw, nothing = self._sampler.draw, self._nothing
        new = sequence[cache.length :]
        for _ in range(n):
            hidden: list[Array] | None = [] if observe else None
            p = distribution(forward(new, cache, 1, hidden)[0])  # (V,)
            token = draw(p)
            position = len(sequence)
            sequence.append(token)
            self._behind = True
            if observe and hidden:
                observe(np.concatenate(hidden)[0], position)
            yield Round(position, (), 0, 0, (token,), "bonus", p[None], nothing, position, position)
            if token in stops:
                return
            new = [token]

    def verify(self, proposed: list[int], q: Distribution, proposal: Proposal) -> Round:
        """One target call on the proposals, and what it makes of them, behind catch_up().

        `proposed` and `q` are the proposal's, checked.
        """
        position = len(self.sequence)
        logits = self._call([self.sequence[-1], *proposed])
        p = self._sampling.distribution(logits)  # (len(proposed) + 1, V)
        judge = self._judge
        # At temperature 0 nothing is left to chance, and a draw costs more than a verdict.
        if self._sampling.temperature > 0 and all_certain(proposed, q):
            judge = by_drawing
        verdict = judge(proposed, p, q, self._stops, self._sampler)
        tokens = proposed[: verdict.accepted]
        closing: Literal["corrected", "bonus", "stopped"]
        if verdict.last is None:
            closing = "stopped"
        else:
            closing = "bonus" if verdict.accepted == len(proposed) else "corrected"
            tokens.append(verdict.last)
        self.sequence += tokens
        self._show(verdict.accepted)
        # The call fed the last token and every proposal; what was rejected is forgotten.
        peak = self.cache.length
        self.cache.truncate(min(peak, len(self.sequence) - 1))
        return Round(
            position=position,
            proposed=tuple(proposed),
            accepted=verdict.accepted,
            tested=verdict.tested,
            tokens=tuple(tokens),
            closing=closing,
            p=p,
            q=q,
            target_cache_peak=peak,
            target_cache_length=self.cache.length,
        )

    def _call(self, tokens: list[int], tree: Tree | None = None) -> Array:
        """The target's logits; its hidden states are kept where the draft reads them."""
        if self._observe is None:
            return self.target.forward(tokens, self.cache, tree=tree)
        self._hidden: list[Array] = []
        return self.target.forward(tokens, self.cache, None, self._hidden, tree)

    def _show(self, row: int) -> None:
        """Show the draft the state that the sequence's last token was drawn from, a row of the
        last call."""
        if self._observe is not None:
            self._observe(np.concatenate(self._hidden)[row], len(self.sequence) - 1)


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
        raise SettingError(_TOO_MANY.format(n=len(tokens), k=k))
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
