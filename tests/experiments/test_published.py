"""Every printed number, computed anew; and that a wrong one would be told."""

import pytest

from tinyllm.experiments.published import PublishedRow, printed, rows
from tinyllm.speculative import theory

ROWS = list(rows())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.source}: {row.number}")
def test_a_published_number_is_ours(row: PublishedRow) -> None:
    low, high = printed(row.published)
    assert row.low <= row.high
    assert row.low <= high
    assert row.high >= low
    assert row.agrees


def test_all_sources_are_there() -> None:
    sources = [row.source for row in ROWS]
    counts = {source: sources.count(source) for source in dict.fromkeys(sources)}
    assert list(counts.values()) == [12, 6, 4, 1, 4, 5, 3, 6]


def test_a_wrong_formula_would_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eq. 1 with a token too few: the classic slip of leaving out the target's own."""
    right = theory.tokens_per_call
    monkeypatch.setattr(theory, "tokens_per_call", lambda alpha, k: right(alpha, k) - 1)
    assert sum(not row.agrees for row in rows()) > 20


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("2.0", 1.95, 2.05), ("0.75", 0.745, 0.755), ("3", 2.5, 3.5), ("10/9", 10 / 9, 10 / 9)],
)
def test_what_a_printed_number_stands_for(text: str, low: float, high: float) -> None:
    assert printed(text) == pytest.approx((low, high))


def test_an_input_may_have_been_printed_without_its_last_zero() -> None:
    assert printed("0.8", 2) == pytest.approx((0.795, 0.805))
