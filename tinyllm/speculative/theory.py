"""What theory says of speculative decoding, from alpha, k and costs. Pure formulas.

alpha is the acceptance rate of one proposal, taken as constant and independent; c is the cost
of a draft call in target calls. Leviathan et al., ICML 2023, unless said otherwise.
"""

from collections.abc import Callable

from tinyllm.errors import SettingError


def tokens_per_call(alpha: float, k: int) -> float:
    """Eq. 1: (1 - alpha^(k+1)) / (1 - alpha), the expected tokens of a round; k + 1 at 1."""
    _check(alpha, k)
    # The sum of the geometric series, which has no division to fail near alpha = 1.
    return sum(alpha**i for i in range(k + 1))


def improvement(alpha: float, k: int, c: float) -> float:
    """Theorem 3.8: speed-up over plain decoding if a verification costs one plain step."""
    _check(alpha, k)
    return tokens_per_call(alpha, k) / (k * c + 1)


def operations_factor(alpha: float, k: int, c_operations: float = 0.0) -> float:
    """Theorem 3.11: arithmetic operations per token relative to plain decoding."""
    _check(alpha, k)
    return (k * c_operations + k + 1) / tokens_per_call(alpha, k)


def forecast(alpha: float, k: int, c: float, verification_cost: Callable[[int], float]) -> float:
    """Speed-up with a verification of n tokens that costs verification_cost(n) plain steps.

    The inverse of MagicDec's time per token (arXiv 2408.11049).
    """
    _check(alpha, k)
    return tokens_per_call(alpha, k) / (k * c + verification_cost(k + 1))


def accepted_per_proposed(alpha: float, k: int) -> float:
    """Expected accepted / proposed: below alpha from k = 2 on, as nothing behind a refusal counts.

    (tokens per call - 1) / k.
    """
    if k < 1:
        raise SettingError(f"k must be at least 1, not {k}")
    return (tokens_per_call(alpha, k) - 1) / k


def alpha_of(per_call: float, k: int) -> float:
    """The alpha at which Eq. 1 gives so many tokens per call, by bisection; from 1 to k + 1."""
    if not 1 <= per_call <= k + 1:
        raise SettingError(f"tokens per call must lie in 1..{k + 1}, not {per_call}")
    low, high = 0.0, 1.0
    for _ in range(60):  # halvings: to the last bit of a float
        middle = (low + high) / 2
        low, high = (middle, high) if tokens_per_call(middle, k) < per_call else (low, middle)
    return high


def _check(alpha: float, k: int) -> None:
    if not 0 <= alpha <= 1:
        raise SettingError(f"alpha must lie in 0..1, not {alpha}")
    if k < 0:
        raise SettingError(f"k must be at least 0, not {k}")
