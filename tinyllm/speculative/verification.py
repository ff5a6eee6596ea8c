"""How proposals are judged: token by token, as a block, or by drawing where they are certain.

All leave the target's law as it is and ask a Sampler for every decision. The formulas are in
acceptance.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinyllm.errors import SettingError
from tinyllm.sampling import Distribution, Sampler
from tinyllm.speculative.acceptance import (
    acceptance_probability,
    block_probabilities,
    block_residual,
    residual,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is kept of a block of proposals, and the token that the target adds."""

    accepted: int
    tested: int  # up to the first that was not kept
    last: int | None  # None: the last kept one ends the run


Rule = Callable[[Sequence[int], Distribution, Distribution, frozenset[int], Sampler], Verdict]


def by_token(
    proposed: Sequence[int],
    p: Distribution,
    q: Distribution,
    stops: frozenset[int],
    sampler: Sampler,
) -> Verdict:
    """Up to the first rejection, or to an accepted stop token. Leviathan et al., Algorithm 1.

    p (len(proposed) + 1, V) is the target's, q (len(proposed), V) the drafter's.
    """
    for i, token in enumerate(proposed):
        if not sampler.accept(acceptance_probability(p[i], q[i], token)):
            return Verdict(i, i + 1, sampler.draw(residual(p[i], q[i])))
        if token in stops:
            return Verdict(i + 1, i + 1, None)
    return Verdict(len(proposed), len(proposed), sampler.draw(p[-1]))


def by_block(
    proposed: Sequence[int],
    p: Distribution,
    q: Distribution,
    stops: frozenset[int],
    sampler: Sampler,
) -> Verdict:
    """The longest prefix that is accepted as a whole. Sun et al. 2024, Algorithm 2.

    Every prefix has a verdict of its own and the longest accepted one counts, so they are asked
    from the longest down. In expectation no rule that leaves the law as it is keeps more.
    """
    reached, accept = block_probabilities(p, q, proposed)
    n = len(proposed)
    accepted = next((i for i in range(n, 0, -1) if sampler.accept(accept[i - 1])), 0)
    for i, token in enumerate(proposed[:accepted]):
        if token in stops:
            return Verdict(i + 1, i + 1, None)
    if accepted == n:
        return Verdict(n, n, sampler.draw(p[-1]))
    law = block_residual(p[accepted], q[accepted], reached[accepted])
    return Verdict(accepted, accepted + 1, sampler.draw(law))


def by_drawing(
    proposed: Sequence[int],
    p: Distribution,
    q: Distribution,
    stops: frozenset[int],
    sampler: Sampler,
) -> Verdict:
    """Draw from p place by place; a proposal is kept as long as it is what was drawn.

    For proposals that are certain, q(x) = 1. Each is kept with probability p(x) and a block with
    the product of these, as by the rules above; what is drawn instead has the law of the residual.
    But the sampler is asked what plain decoding asks it: the same seed makes the same text.
    """
    for i, token in enumerate(proposed):
        drawn = sampler.draw(p[i])
        if drawn != token:
            return Verdict(i, i + 1, drawn)
        if token in stops:
            return Verdict(i + 1, i + 1, None)
    return Verdict(len(proposed), len(proposed), sampler.draw(p[-1]))


def all_certain(proposed: Sequence[int], q: Distribution) -> bool:
    """Whether every proposal has q(x) = 1. It then was no choice, so that to choose the rule by it
    leaves the law as it is."""
    return all(q[i, token] == 1 for i, token in enumerate(proposed))


RULES: dict[str, Rule] = {"token": by_token, "block": by_block}


def rule_named(name: str) -> Rule:
    """A rule by name; SettingError for a name that is none."""
    try:
        return RULES[name]
    except (KeyError, TypeError):
        raise SettingError(f"verify must be one of {', '.join(RULES)}, not {name!r}") from None
