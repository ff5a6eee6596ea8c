"""The acceptance rule of speculative decoding, one formula a function.

Leviathan et al., ICML 2023, Algorithm 1, in its symbols: p is the target's distribution, q the
drafter's, both after temperature, top-k and top-p. Chen et al. 2023 name the two the other way
round; their Theorem 1 proves that the emitted token has exactly the law p.
"""

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


def acceptance_rate(p: Distribution, q: Distribution) -> float:
    """sum_x min(p(x), q(x)): the expected acceptance of one proposal, 1 - total variation."""
    return float(p.clip(None, q).sum())
