"""Strips, figures, sentences and numbers, without a browser and without a page."""

from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.experiments import (
    attention_step,
    head_quality,
    kv_cache,
    kv_heads,
    memory,
    race,
    speculative,
    speculative_record,
)
from tinyllm.experiments.settings import CONTEXT_LENGTH, RunConfig
from tinyllm.experiments.timing import Spread
from tinyllm.model import random_model
from tinyllm.speculative import NGramDrafter
from tinyllm.tokenizer import CharTokenizer
from tinyllm.ui import figures, findings, formulas, heads, strip, text
from tinyllm.ui.state import Play, Store

SMALL = ModelConfig(n_layer=2, n_head=4, n_kv_head=2, width=32)
SPAN = speculative.CacheSpan(10**5, 10**6, 100)


def valid(figure: figures.Figure) -> go.Figure:
    """The figure as Plotly checks it, with its palette names filled in."""

    def paint(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("$"):
            return "#123456"
        if isinstance(value, dict):
            return {key: paint(item) for key, item in value.items()}
        return [paint(item) for item in value] if isinstance(value, list) else value

    return go.Figure(paint(figure))


@pytest.fixture(scope="module")
def record() -> speculative_record.Record:
    target = random_model(SMALL, 1)
    watched = speculative_record.Record(target.tokenizer)
    for event in speculative.watch(RunConfig(tokens=24), target, random_model(SMALL, 2)):
        watched.take(event)
    return watched


def test_a_strip_holds_every_token_once(record: speculative_record.Record) -> None:
    pieces = strip.pieces(record.rows, record.tokenizer)
    kept = "".join(one.text for one in pieces if one.mark not in ("rejected", "skipped"))
    made = [token for row in record.rows for token in row.round.tokens]
    assert kept == CharTokenizer().decode(made)
    proposed = sum(len(row.round.proposed) for row in record.rows)
    marks = [one.mark for one in pieces]
    assert marks.count("accepted") == record.counters.accepted
    drafted = marks.count("accepted") + marks.count("rejected") + marks.count("skipped")
    assert drafted == proposed
    assert marks.count("rejected") == marks.count("corrected")
    assert set(marks) <= set(strip.mark_names())
    details = strip.details(pieces, record.rows, record.tokenizer)
    assert len(details) == len(pieces)
    assert pieces[strip.focus(pieces, following=True)].mark in ("corrected", "bonus")
    assert pieces[strip.focus(pieces, following=False)].mark == "corrected"
    assert strip.focus([], following=True) == 0


def test_a_strip_escapes_and_shows_whitespace() -> None:
    html = strip.strip_html([strip.Piece(one, 0, "accepted", (0, 0)) for one in "<&\"'> \n"])
    for shown in ("&lt;", "&amp;", "&quot;", "&#x27;", "&gt;", "·", "⏎"):
        assert f">{shown}</span>" in html


def test_groups_are_parted_by_spaces_so_that_lines_wrap() -> None:
    html = strip.strip_html(
        [strip.Piece("a", 1, "accepted", (0, 0)), strip.Piece("b", 2, "bonus", (1, 0))]
    )
    assert '</span></span> <span class="r">' in html


def test_figures_are_valid_and_small(record: speculative_record.Record) -> None:
    drawn = valid(figures.rounds_figure(record.rows, RunConfig(tokens=24), SPAN))
    assert len(drawn.data) == 3
    assert len(valid(figures.curve_figure(record, 4)).data) == 3
    model = random_model(SMALL)
    rows = list(kv_cache.step_times(RunConfig(tokens=8), model, rows=3, repeats=1))
    assert len(valid(figures.cache_figure(rows, SMALL, CONTEXT_LENGTH)).data) == 3


@pytest.mark.parametrize("prompt", ["x", "x" * 50])
def test_a_cell_of_the_cache_keeps_its_shade_while_others_join_it(prompt: str) -> None:
    config = RunConfig(tokens=8, prompt=prompt)
    rows = list(kv_cache.step_times(config, random_model(SMALL), rows=12, repeats=1))
    begun = next(n for n, row in enumerate(rows) if row.position >= 32) + 1
    before, after = (
        figures.cache_figure(part, SMALL, CONTEXT_LENGTH)["data"][2]
        for part in (rows[:begun], rows)
    )
    for shade in ("zmin", "zmax", "colorscale"):
        assert before[shade] == after[shade]
    for early, late in zip(before["z"], after["z"], strict=True):
        held = [cell for cell in early if cell is not None]
        assert held == late[: len(held)]
        assert len(held) == rows[begun - 1].position
        assert all(cell is not None for cell in late[: CONTEXT_LENGTH - 1])


def test_figures_of_nothing_yet() -> None:
    valid(figures.rounds_figure([], RunConfig(), SPAN))
    valid(figures.curve_figure(speculative_record.Record(CharTokenizer()), 4))
    valid(figures.cache_figure([], SMALL, CONTEXT_LENGTH))


@pytest.mark.parametrize(
    ("speed", "says"), [(0.6, "does not pay"), (0.99, "the same"), (1.5, "that pays")]
)
def test_sentences_say_whether_speculation_pays(
    record: speculative_record.Record, speed: float, says: str
) -> None:
    spread = Spread.of([speed])
    measured = replace(record, comparison=speculative_record.Comparison(spread, 1000, 1000 * speed))
    assert says in findings.speculative(measured, RunConfig())


def test_sentences_about_a_run(record: speculative_record.Record) -> None:
    nothing = findings.speculative(speculative_record.Record(CharTokenizer()), RunConfig())
    assert "nothing" in nothing
    assert findings.rounds_chart(record)
    assert findings.curve_chart(record).count(":") >= len(speculative.KS)
    assert len(findings.counter_rows(record.counters)) == 9


def test_sentences_of_race_and_cache() -> None:
    model = random_model(SMALL)
    lanes = race.lanes(
        race.race(RunConfig(tokens=8, temperature=0.0), model, NGramDrafter(), repeats=1),
        model.tokenizer,
    )
    assert "the same 8 tokens" in findings.race(lanes)
    row = next(kv_cache.step_times(RunConfig(tokens=8), model, rows=2, repeats=1))
    assert str(row.position) in findings.cache(row)
    assert str(row.position) in findings.cache_chart(row)


def test_formulas_hold_the_numbers(record: speculative_record.Record) -> None:
    size = memory.cache_size(SMALL, "int8", 10)
    lines = formulas.cache_bytes(SMALL, 10, "int8", size)
    assert all(f"{size.formula:,}" in line for line in lines[1:])
    assert "measured" in formulas.tokens_per_call(0.5, 4, record.counters)[-1]
    assert "k + 1" in formulas.tokens_per_call(1.0, 4, record.counters)[1]
    assert "not measured" in formulas.speedup(None)
    assert formulas.speedup(record.comparison)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1572864, "1.50 MiB"), (3e9, "2.79 GiB")],
)
def test_bytes_are_binary(count: float, shown: str) -> None:
    assert text.format_bytes(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (85e-6, "85 µs"),
        (0.52e-3, "0.52 ms"),
        (12.34e-3, "12.3 ms"),
        (0.25, "250 ms"),
        (1.5, "1.50 s"),
    ],
)
def test_seconds(seconds: float, shown: str) -> None:
    assert text.format_seconds(seconds) == shown


@pytest.mark.parametrize(("rate", "shown"), [(6718.7, "6,720"), (370.8, "371"), (12.34, "12.3")])
def test_rates_have_three_figures(rate: float, shown: str) -> None:
    assert text.format_rate(rate) == shown


def test_a_store_keeps_the_most_recent() -> None:
    store: Store[int] = Store(keep=2)
    for number in range(3):
        store.put(number, number)
    assert store.get(0) is None
    assert store.get(1) == 1
    store.put(3, 3)
    assert store.get(2) is None
    assert store.get(1) == 1


class Taken(list[int]):
    def take(self, item: int) -> bool:
        self.append(item)
        return item % 2 == 1


def test_a_play_asks_for_no_more_than_one_picture() -> None:
    play = Play(RunConfig(), range(5), Taken())
    play.watched = True
    play.advance()
    assert play.result == [0, 1]
    play.stopped = True
    assert not play.running
    hurried = Play(RunConfig(), range(5), Taken())
    hurried.advance()
    assert hurried.result == [0, 1, 2, 3, 4]
    assert hurried.ended


def test_the_kv_heads_page_draws_every_row() -> None:
    times = attention_step.attention_times((8, 1), 16, 2)
    read = [
        head_quality.VariantTime(name, window, loss, 0.001)
        for window in range(2)
        for name, loss in (("all", 1.0), ("half", 1.1), ("one", 1.2))
    ]
    known = [
        head_quality.Variant(name, replace(PRESETS["target"], n_kv_head=count), training, 1.0)
        for name, count, training in (
            ("all", 4, head_quality.SCRATCH),
            ("half", 2, head_quality.SCRATCH),
            ("one", 1, head_quality.UPTRAINED),
        )
    ]
    record = kv_heads.HeadsRecord(known, list(times), read)
    assert [len(one.x) for one in valid(heads.attention_figure(record.attention)).data] == [2] * 3
    scratch, uptrained = valid(heads.quality_figure(record.quality)).data
    assert list(scratch.y) == [1.0, 1.1]
    assert list(uptrained.y) == [1.0, 1.2]  # from the model it was made from
    assert "costs +0.200 ± 0.000 nats" in heads.notice(record)
    four = [*known, replace(known[2], name="scratch", training=head_quality.SCRATCH)]
    more = [head_quality.VariantTime("scratch", window, 1.4, 0.001) for window in range(2)]
    both = kv_heads.HeadsRecord(four, record.attention_times, [*read, *more])
    assert "+0.200 nats a character uptrained" in heads.notice(both)
    assert "+0.400 trained from scratch" in heads.notice(both)
    assert "1.200 with one" in heads.quality_chart(record)
    assert heads.attention_chart(record)
    assert formulas.heads_bytes(record.attention, 16)[1].endswith("= 131,072")
    valid(heads.attention_figure([]))
    valid(heads.quality_figure([]))


def test_the_cache_pages_numbers() -> None:
    model = random_model(SMALL)
    record = kv_cache.CacheRecord(8)
    config = RunConfig(prompt="x" * 504, tokens=8)
    assert formulas.step_flops(SMALL, 99)[1].count("99") == 1
    for event in kv_cache.watch(config, model):
        record.take(event)
        if record.rows and not record.times:
            assert findings.cache_numbers(record, SMALL)[3][1] == "-"
    numbers = findings.cache_numbers(record, SMALL)
    assert all("MFLOP" in value for _name, value, _meaning in numbers[:3])
    assert all("(" in value for _name, value, _meaning in numbers[3:5])
    assert record.equality is not None
    assert f"all {record.equality.tokens}" in numbers[5][1]
