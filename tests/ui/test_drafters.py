"""What the drafters page says is true of its rows."""

from dataclasses import replace

from tinyllm.experiments.drafters import DrafterRow, DraftersRecord
from tinyllm.experiments.timing import Spread
from tinyllm.ui import drafters

ROW = DrafterRow(
    drafter="draft",
    tokens_per_call=3.0,
    acceptance_rate=0.8,
    accepted_per_proposed=0.6,
    proposed_per_round=4.0,
    c=Spread.of([0.2]),
    speedup=Spread.of([1.2, 1.3, 1.4]),
    weights_bytes=1000,
    state_bytes=10,
    identical=None,
    runs=3,
)


class Shown(DraftersRecord):
    """A record of given rows."""

    rows: list[DrafterRow] | None = None


def shown(*rows: DrafterRow) -> Shown:
    record = Shown(0.7)
    record.rows = list(rows)
    return record


def test_the_fastest_with_the_most_tokens_is_praised_for_both() -> None:
    slower = replace(ROW, drafter="ngram", tokens_per_call=2.0, speedup=Spread.of([1.1]))
    said = drafters.finding(shown(ROW, slower))
    assert said.startswith("The fastest, draft model, also makes the most tokens")
    assert "1.30 times plain" in said


def test_two_with_as_many_tokens_are_not_set_against_each_other() -> None:
    as_many = replace(ROW, drafter="draft-ngram", speedup=Spread.of([1.1]))
    assert "come from another" not in drafters.finding(shown(as_many, ROW))


def test_the_most_tokens_may_come_from_another() -> None:
    """Why it is slower holds also for a tree, whose proposals cost no more than the fastest's."""
    more = replace(ROW, drafter="draft-tree", tokens_per_call=3.5, speedup=Spread.of([1.12]))
    said = drafters.finding(shown(ROW, more))
    assert "The most, 3.50, come from another, draft model, as a tree" in said
    assert "costs 3.12 steps, against 2.31" in said  # 3.5 / 1.12 and 3 / 1.3


def test_where_none_wins_it_is_said() -> None:
    slow = replace(ROW, speedup=Spread.of([0.7]))
    assert drafters.finding(shown(slow)).startswith("None wins on this prompt: the fastest, draft")
    assert drafters.tiles(shown(slow)) == {"Fastest: draft model": "0.70 ×"}


def test_nothing_measured_yet_makes_no_claim() -> None:
    assert "every drafter decodes" in drafters.finding(shown()).lower()
    assert drafters.tiles(shown()) == {"Fastest here": "-"}


def test_the_figure_and_its_words_have_every_row() -> None:
    other = replace(ROW, drafter="heads-tree", tokens_per_call=2.5)
    figure = drafters.figure([ROW, other])
    assert [bars["y"] for bars in figure["data"]] == [["draft model", "heads, as a tree"]] * 2
    assert figure["data"][1]["x"] == [3.0, 2.5]
    words = drafters.alt([ROW, other])
    assert "heads, as a tree: 1.30 times plain speed, 2.50 tokens" in words
