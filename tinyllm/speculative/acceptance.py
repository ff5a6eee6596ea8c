"""The acceptance rules of speculative decoding, one formula a function.

Leviathan et al., ICML 2023, Algorithm 1, in its symbols: p is the target's distribution, q the
drafter's, both after temperature, top-k and top-p. Chen et al. 2023 name the two the other way
round; their Theorem 1 proves that the emitted token has exactly the law p. Sun et al. 2024,
arXiv 2403.10444, Algorithm 2, judge a block of proposals as a whole, with the same law.
"""

from collections.abc import Sequence

from tinyllm.sampling import Distribution


def acceptance_probability(p: Distribution, q: Distribution, token: int) -> float:
    """min(1, p(x) / q(x)) for a token x drawn from q, so q(x) > 0."""
    return min(1.0, float(p[token]) / float(q[token]))


def residual(p: Distribution, q: Distribution) -> Distribution:
    """norm(max(0, p - q)), what a rejected position is drawn from.

    Where p and q agree to rounding nothing remains and no rejection can happen; then p.
    """
    excess = p - q
    excess.clip(0, None, excess)
    total = excess.sum()
    return excess / total if total > 0 else p


def without(q: Distribution, token: int) -> Distribution | None:
    """q when a token has been drawn and is not put back; None when nothing is left."""
    rest = q.copy()
    rest[token] = 0.0
    total = rest.sum()
    return rest / total if total > 0 else None


def acceptance_rate(p: Distribution, q: Distribution) -> float:
    """sum_x min(p(x), q(x)): the expected acceptance of one proposal, 1 - total variation."""
    return float(p.clip(None, q).sum())


def block_probabilities(
    p: Distribution, q: Distribution, tokens: Sequence[int]
) -> tuple[list[float], list[float]]:
    """(reached, accept) of a block of n tokens drawn from q; p (n + 1, V), q (n, V).

    reached[i], n + 1 of them, is p_i of the paper: p_0 = 1, p_i = min(1, p_(i-1) p(x_i) / q(x_i)),
    the share of the first i tokens that may be kept. accept[i - 1] is h_i, the probability with
    which exactly these i are, if no longer prefix is: with m = sum_x max(0, p_i p(x) - q(x)) of
    the place behind them it is m / (m + 1 - p_i), and p_n for the whole block.
    """
    reached = [1.0]
    for i, token in enumerate(tokens):
        reached.append(min(1.0, reached[-1] * float(p[i, token]) / float(q[i, token])))
    accept = []
    for i in range(1, len(tokens)):
        mass = float((reached[i] * p[i] - q[i]).clip(0).sum())
        left_out = 1 - reached[i]
        # p_i = 1 and p = q behind it: a longer prefix is accepted, and this one never asked.
        accept.append(mass / (mass + left_out) if mass + left_out > 0 else 1.0)
    return reached, [*accept, reached[-1]] if tokens else []


def block_residual(p: Distribution, q: Distribution, reached: float) -> Distribution:
    """norm(max(0, reached p - q)), what follows a prefix that is kept with p_i = reached.

    Where nothing remains nothing is refused there; then p.
    """
    kept = reached * p
    return residual(kept, q) if (kept > q).any() else p
