"""Faults of the acceptance rule, and the exact law that each emits.

A step draws a proposal, asks for a verdict and corrects. The faulty ones differ from `right_step`
in one line. Every branch of a step is taken, so the laws are exact: no sampling noise. The toy is
three tokens under target p and drafter q.
"""

from collections.abc import Callable

import numpy as np

from tinyllm.experiments.enumeration import law
from tinyllm.experiments.pitfalls.record import Bars, Bench, Result, Seen
from tinyllm.sampling import Distribution, Sampler
from tinyllm.speculative.acceptance import acceptance_probability, residual

P, Q = np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.2, 0.3])
Step = Callable[[Distribution, Distribution, Sampler], int]
Measure = Callable[[Bench], Seen]


def right_step(p: Distribution, q: Distribution, sampler: Sampler) -> int:
    """The rule, from the engine's own functions."""
    token = sampler.draw(q)
    if sampler.accept(acceptance_probability(p, q, token)):
        return token
    return sampler.draw(residual(p, q))


def argmax_proposal(p: Distribution, q: Distribution, sampler: Sampler) -> int:
    """Proposes the likeliest token, and tests it as if it had been drawn from q."""
    token = int(q.argmax())  # its law is one-hot, not q
    if sampler.accept(acceptance_probability(p, q, token)):
        return token
    return sampler.draw(residual(p, q))


def softmax_residual(p: Distribution, q: Distribution, sampler: Sampler) -> int:
    """Makes the residual sum to one with a softmax, which also gives to tokens that had none."""
    token = sampler.draw(q)
    if sampler.accept(acceptance_probability(p, q, token)):
        return token
    weights = np.exp(np.maximum(p - q, 0))
    return sampler.draw(weights / weights.sum())


def target_after_refusal(p: Distribution, q: Distribution, sampler: Sampler) -> int:
    """Draws from p after a refusal: what q proposes often is then emitted too often."""
    token = sampler.draw(q)
    if sampler.accept(acceptance_probability(p, q, token)):
        return token
    return sampler.draw(p)


def top_2(p: Distribution) -> Distribution:
    """p with all but its two likeliest tokens removed."""
    kept: Distribution = np.where(p >= np.sort(p)[-2], p, 0)
    kept /= kept.sum()
    return kept


def filter_on_the_draw_only(p: Distribution, q: Distribution, sampler: Sampler) -> int:
    """Draws the proposal through a top-k filter of 2, and tests it against the unfiltered q."""
    token = sampler.draw(top_2(q))
    if sampler.accept(acceptance_probability(top_2(p), q, token)):
        return token
    return sampler.draw(residual(top_2(p), q))


def cooled(p: Distribution) -> Distribution:
    """p at temperature 1/2."""
    squared: Distribution = p**2
    squared /= squared.sum()
    return squared


def temperature_on_the_draw_only(p: Distribution, q: Distribution, sampler: Sampler) -> int:
    """Draws the proposal at temperature 1/2, and tests it against q at temperature 1."""
    token = sampler.draw(cooled(q))
    if sampler.accept(acceptance_probability(cooled(p), q, token)):
        return token
    return sampler.draw(residual(cooled(p), q))


def token_zero_is_nothing(p: Distribution, q: Distribution, sampler: Sampler) -> int:
    """Takes token 0 for "no proposal", as `if token` does."""
    token = sampler.draw(q)
    if token and sampler.accept(acceptance_probability(p, q, token)):
        return token
    return sampler.draw(residual(p, q))


def unnormalised_residual(p: Distribution, q: Distribution, sampler: Sampler) -> int:
    """Draws from max(0, p - q) undivided: uniform numbers beyond its sum fall to the last token."""
    token = sampler.draw(q)
    if sampler.accept(acceptance_probability(p, q, token)):
        return token
    weights = np.maximum(p - q, 0)
    weights[-1] += 1 - weights.sum()  # what searchsorted(cumsum(weights), uniform) amounts to
    return sampler.draw(weights)


def undivided_choice(p: Distribution, q: Distribution, rng: np.random.Generator) -> int:
    """The same slip with numpy's own draw, which refuses it."""
    return int(rng.choice(len(p), p=np.maximum(p - q, 0)))


def empty_residual(p: Distribution, q: Distribution, rng: np.random.Generator) -> int:
    """Divides the residual by its sum also where p and q agree to rounding: 0 / 0."""
    weights = np.maximum(p - q, 0)
    with np.errstate(invalid="ignore"):
        return int(rng.choice(len(p), p=weights / weights.sum()))


def exact_law(step: Step, p: Distribution, q: Distribution) -> Distribution:
    """(V,) the probability of every token, over all branches of a step."""
    found = law(lambda sampler: step(p, q, sampler))
    return np.array([found.get(token, 0.0) for token in range(len(p))])


def compared(step: Step, filtered: Callable[[Distribution], Distribution] = np.array) -> Measure:
    """Measures a faulty step's law beside the right one, both on the toy behind a filter."""

    def measure(bench: Bench) -> Seen:
        wrong = exact_law(step, P, Q)
        right = exact_law(right_step, filtered(P), filtered(Q))
        alpha = float(np.minimum(filtered(P), filtered(Q)).sum())
        engine = f"accepts {alpha:.3g} of the proposals and emits exactly p"
        result = Result("law of the emitted token", _shown(wrong), _shown(right), engine)
        return Seen(result, _bars(wrong, right))

    return measure


def measure_unnormalised(bench: Bench) -> Seen:
    """numpy's refusal, and the law of a draw that does not refuse."""
    wrong, right = exact_law(unnormalised_residual, P, Q), exact_law(right_step, P, Q)
    message = _refusal(undivided_choice, P, Q, bench.seed)
    result = Result(
        "a draw from max(0, p - q), and the law where the draw goes through",
        f"{message}; {_shown(wrong)}",
        _shown(right),
        f"divides by the sum: residual {_shown(residual(P, Q))}",
    )
    return Seen(result, _bars(wrong, right))


def measure_empty_residual(bench: Bench) -> Seen:
    """A refusal where p and q differ by one rounding."""
    q = np.array([0.6, 0.3, 0.1])
    p = q.copy()
    p[0] = np.nextafter(p[0], 0)  # as from calls of other widths: the ratio is just below one
    result = Result(
        "a draw from the residual where p = q but for a rounding",
        _refusal(empty_residual, p, q, bench.seed),
        _shown(residual(p, q)),
        "draws from p, since nothing remains of p - q",
    )
    return Seen(result)


def _refusal(
    draw: Callable[[Distribution, Distribution, np.random.Generator], int],
    p: Distribution,
    q: Distribution,
    seed: int,
) -> str:
    try:
        return f"token {draw(p, q, np.random.default_rng(seed))}"
    except ValueError as error:
        return f"ValueError: {error}"


def _shown(p: Distribution) -> str:
    return ", ".join(f"{one:.3f}" for one in p)


def _bars(wrong: Distribution, right: Distribution) -> Bars:
    labels = tuple(f"token {token}" for token in range(len(right)))
    return Bars(labels, tuple(wrong.tolist()), tuple(right.tolist()))
