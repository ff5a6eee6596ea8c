"""Numbers that papers and issues print, beside what our formulas make of the same inputs.

A printed input or result is rounded: it stands for all numbers that round to it. So an input is
varied over its interval, and agreement means that the intervals meet.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from tinyllm.experiments.enumeration import ScriptedSampler, law
from tinyllm.speculative import Counters, theory
from tinyllm.speculative.verification import RULES

LEVIATHAN = "Leviathan et al. 2023"
ISSUE = "llama.cpp issue 3649"
SCHEMA = "a public histogram of accepted counts, k = 3: 39, 1, 0, 3"
SUN = "Sun et al. 2024"
TABLE_1 = (  # alpha, k, operations, speed; c = 0
    ("0.6", 2, "1.53", "1.96"),
    ("0.7", 3, "1.58", "2.53"),
    ("0.8", 2, "1.23", "2.44"),
    ("0.8", 5, "1.63", "3.69"),
    ("0.9", 2, "1.11", "2.71"),
    ("0.9", 10, "1.60", "6.86"),
)
TABLE_4 = (  # T, draft, k, alpha, c, speed
    ("T = 0, small", 7, "0.75", "0.02", "3.2"),
    ("T = 0, base", 7, "0.8", "0.04", "3.3"),
    ("T = 0, large", 7, "0.82", "0.11", "2.5"),
    ("T = 1, small", 7, "0.62", "0.02", "2.3"),
    ("T = 1, base", 5, "0.68", "0.04", "2.4"),
    ("T = 1, large", 3, "0.71", "0.11", "2.0"),
)
APPENDIX_A5 = (("0.75", "3.3"), ("0.75", "3.3"), ("0.8", "3.9"), ("0.87", "4.9"))  # k 8, c 0.015
BY_K = ((1, "0.80"), (2, "0.72"), (4, "0.5904"), (8, "0.416"), (16, "0.243"))  # alpha 0.8
BLOCKS = ((2, "10/9", "11/9"), (3, "38/27", "5/3"), (4, "130/81", "166/81"))
HISTOGRAM = (39, 1, 0, 3)  # rounds with 0, 1, 2 and 3 accepted
P, Q = (1 / 3, 2 / 3), (2 / 3, 1 / 3)  # of the example of block verification


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One printed number, and ours: an interval where inputs were printed rounded."""

    source: str
    number: str  # what it is, with its inputs
    published: str
    low: float
    high: float
    agrees: bool


def rows() -> Iterator[PublishedRow]:
    """All of them, in the order of the sources."""
    yield from _table_1()
    yield from _table_4()
    yield from _issue()
    for k, share in BY_K:
        value = theory.accepted_per_proposed(0.8, k)
        yield _exact("Eq. 1 rearranged", f"accepted / proposed, α 0.8, k {k}", share, value)
    yield from _schema()
    for k, *published in BLOCKS:
        for rule, kept in zip(RULES, published, strict=True):
            number = f"accepted a round by {rule}, p (1/3, 2/3), q (2/3, 1/3), k {k}"
            yield _exact(SUN, number, kept, expected_accepted(rule, k))


def _table_1() -> Iterator[PublishedRow]:
    source = f"{LEVIATHAN}, Table 1"
    for alpha, k, operations, speed in TABLE_1:
        given = f"α {alpha}, k {k}, c 0"
        factor = theory.operations_factor(float(alpha), k)
        yield _exact(source, f"operations, {given}", operations, factor)
        yield _exact(source, f"speed-up, {given}", speed, theory.improvement(float(alpha), k, 0))


def _table_4() -> Iterator[PublishedRow]:
    for who, k, alpha, c, speed in TABLE_4:
        given = f"speed-up, English to German, {who}: α {alpha}, c {c}, k {k}"
        yield _within(f"{LEVIATHAN}, Table 4", given, speed, k, alpha, c)
    for alpha, speed in APPENDIX_A5:
        given = f"speed-up, T = 0: α {alpha}, c 0.015, k 8"
        yield _within(f"{LEVIATHAN}, Appendix A.5", given, speed, 8, alpha, None)
    value = theory.improvement(0.2, 3, 0)
    yield _exact(LEVIATHAN, "speed-up, bigrams: α 0.2, c 0, k 3", "1.25", value)


def _issue() -> Iterator[PublishedRow]:
    """Target 52.5 tokens/s, draft 619.4, a batch of five 121.7; 260 drafted, 208 accepted."""
    k, c, batch_of_five = 5, 52.5 / 619.4, 5 * 52.5 / 121.7
    per_call = 1 + 208 / (260 / k)
    alpha = theory.alpha_of(per_call, k)
    yield _exact(ISSUE, "tokens per call, 208 of 260 accepted, k 5", "5.0", per_call)
    yield _exact(ISSUE, "α that gives them by Eq. 1", "0.9265", alpha)
    flat = theory.improvement(alpha, k, c)
    yield _exact(ISSUE, "speed-up if checking cost one step", "3.51", flat)
    measured = theory.forecast(alpha, k, c, lambda n: batch_of_five)
    yield _exact(ISSUE, "speed-up at its batch of five", "1.94", measured)


def _schema() -> Iterator[PublishedRow]:
    longest = len(HISTOGRAM) - 1
    rounds = sum(HISTOGRAM)
    accepted = sum(count * n for count, n in enumerate(HISTOGRAM))
    tested = sum(min(count + 1, longest) * n for count, n in enumerate(HISTOGRAM))
    counters = Counters(
        drafts=rounds,
        proposed=longest * rounds,
        accepted=accepted,
        tested=tested,
        emitted=accepted + rounds,
    )
    yield _exact(SCHEMA, "tokens per call", "1.23256", counters.tokens_per_call or 0)
    share = counters.accepted_per_proposed or 0
    yield _exact(SCHEMA, "accepted / proposed", "0.0775", share)
    yield _exact(SCHEMA, "accepted / tested", "0.20", counters.acceptance_rate or 0)


def expected_accepted(rule: str, k: int) -> float:
    """Of a round of k proposals in Sun et al.'s example: every proposal and verdict enumerated."""
    p, q = np.array([P] * (k + 1)), np.array([Q] * k)

    def accepted(sampler: ScriptedSampler) -> int:
        proposed = [sampler.draw(q[i]) for i in range(k)]
        return RULES[rule](proposed, p, q, frozenset(), sampler).accepted

    return sum(count * weight for count, weight in law(accepted).items())


def _exact(source: str, number: str, published: str, value: float) -> PublishedRow:
    low, high = printed(published)
    return PublishedRow(source, number, published, value, value, low <= value <= high)


def _within(
    source: str, number: str, published: str, k: int, alpha: str, c: str | None
) -> PublishedRow:
    """Speed-up by Theorem 3.8 over all alpha and c that round to those printed."""
    costs = printed(c) if c else (0.015, 0.015)
    corners = [theory.improvement(a, k, b) for a, b in product(printed(alpha, 2), costs)]
    low, high = printed(published)
    agrees = min(corners) <= high and max(corners) >= low
    return PublishedRow(source, number, published, min(corners), max(corners), agrees)


def printed(text: str, digits: int | None = None) -> tuple[float, float]:
    """All numbers that a printed one may stand for; a fraction stands for itself."""
    if "/" in text:
        above, below = map(int, text.split("/"))
        return above / below - 1e-12, above / below + 1e-12
    places = len(text.partition(".")[2]) if digits is None else digits
    half = 0.5 * 10.0**-places * (1 + 1e-9)
    return float(text) - half, float(text) + half
