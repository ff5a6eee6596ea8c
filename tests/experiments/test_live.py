"""The experiments behind the pages, with small models: what they yield adds up."""

from collections.abc import Iterable

import numpy as np
import pytest

from tinyllm.cache import DenseCache, format_of
from tinyllm.config import PRESETS, ModelConfig
from tinyllm.experiments import kv_cache, race, speculative, speculative_record, timing
from tinyllm.experiments.settings import CONTEXT_LENGTH, RunConfig
from tinyllm.experiments.timing import Spread, timed
from tinyllm.generation import generate
from tinyllm.model import Transformer, random_model
from tinyllm.speculative import NGramDrafter, speculate
from tinyllm.tokenizer import ALPHABET

SMALL = ModelConfig(n_layer=2, n_head=4, n_kv_head=2, width=32)


@pytest.fixture(scope="module")
def model() -> Transformer:
    return random_model(SMALL, seed=1)


@pytest.fixture(scope="module")
def drafter() -> Transformer:
    return random_model(PRESETS["draft"], seed=2)


def plain_text(model: Transformer, config: RunConfig) -> str:
    tokens = generate(model, config.prompt, **config.run_settings)
    return "".join(ALPHABET[token.id] for token in tokens)


def text_of(rows: Iterable[speculative_record.RoundRow]) -> str:
    return "".join(ALPHABET[token] for row in rows for token in row.round.tokens)


def test_the_race_writes_one_text_in_three_lanes(model: Transformer, drafter: Transformer) -> None:
    config = RunConfig(temperature=0.0, tokens=24)
    record = race.RaceRecord(model.tokenizer)
    for step in race.race(config, model, drafter, repeats=2):
        record.take(step)
    lanes = record.lanes
    assert [lane.name for lane in lanes] == list(race.LANES)
    assert {lane.text for lane in lanes} == {plain_text(model, config)}
    assert [lane.calls for lane in lanes[:2]] == [24, 24]
    assert all(list(lane.ends) == sorted(lane.ends) for lane in lanes)
    assert all(lane.tokens_per_second.count == 2 for lane in lanes)
    factor = race.slow_down(lanes)
    slowest = max(lane.ends[-1] for lane in lanes)
    assert factor * slowest == pytest.approx(race.REPLAY_SECONDS, rel=0.06)


def test_tokens_read() -> None:
    assert race.tokens_read(3, 8) == (sum(range(3, 11)), 10)


def test_step_times_fill_the_context(model: Transformer) -> None:
    config = RunConfig(prompt="x" * 300, tokens=8, kv_dtype="int8")
    rows = list(kv_cache.step_times(config, model, rows=5, repeats=2))
    assert [row.position for row in rows] == kv_cache.positions(config, 5)
    assert rows[0].position == 300
    assert rows[-1].position == CONTEXT_LENGTH - 1
    assert sum(row.fill.shape[1] for row in rows) == CONTEXT_LENGTH - 1
    assert all(row.fill.shape[0] == SMALL.n_layer * SMALL.n_kv_head for row in rows)
    assert np.isfinite(np.concatenate([row.fill for row in rows], axis=1)).all()
    for row in rows:
        assert row.used_bytes == format_of("int8").bytes(SMALL, row.position)
        assert row.cached_seconds.count == row.uncached_seconds.count == 2


def test_a_watched_run_adds_up(model: Transformer, drafter: Transformer) -> None:
    config = RunConfig(tokens=24, k=3, temperature=0.8)
    record = speculative_record.Record(model.tokenizer)
    worth = [record.take(event) for event in speculative.watch(config, model, drafter)]
    assert sum(worth) == len(record.rows)
    assert len(text_of(record.rows)) == 24
    assert [row.made for row in record.rows][-1] == 24
    assert record.counters.emitted == 24
    assert list(record.points) == list(speculative.KS)
    assert record.points[3].counters.proposed >= record.counters.proposed
    assert record.comparison is not None
    assert record.comparison.speedup.count == speculative.PAIRS
    per_token = model.new_cache(config.kv_dtype, capacity=1).nbytes
    held = len(config.prompt) - 1
    for row in record.rows:
        assert row.peak_bytes == (held + 1 + len(row.round.proposed)) * per_token
        held += len(row.round.tokens)
        assert row.used_bytes == held * per_token <= row.peak_bytes
    restarted = record.restarted()
    assert restarted.rows == []
    assert restarted.comparison is record.comparison
    assert len(speculative_record.rounds_table(record)) == record.counters.drafts
    assert len(speculative_record.points_table(record)) == len(speculative.KS)


def test_the_bytes_of_a_round_are_those_of_the_targets_cache(
    model: Transformer, drafter: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked of the cache itself: when a call has filled it, and when the rejected are forgotten."""
    calls: list[tuple[DenseCache, int]] = []
    commit = DenseCache.commit

    def noted(cache: DenseCache, tokens: list[int]) -> None:
        commit(cache, tokens)
        if cache.config == SMALL:  # the target's
            calls.append((cache, cache.used_nbytes))

    monkeypatch.setattr(DenseCache, "commit", noted)
    config = RunConfig(tokens=24, k=3, temperature=0.8, kv_dtype="int8")
    rows = []
    for row in speculative.rounds(config, model, drafter):
        cache, peak = calls[-1]
        assert (row.peak_bytes, row.used_bytes) == (peak, cache.used_nbytes)
        rows.append(row)
    assert len(calls) == len(rows) + 1  # the prompt
    assert any(row.peak_bytes > row.used_bytes for row in rows)


def test_greedy_rounds_make_the_plain_text(model: Transformer) -> None:
    config = RunConfig(tokens=40, temperature=0.0, drafter="ngram")
    rows = list(speculative.rounds(config, model, NGramDrafter()))
    assert text_of(rows) == plain_text(model, config)


def test_choices_are_the_most_likely_under_either(model: Transformer, drafter: Transformer) -> None:
    config = RunConfig(tokens=16, k=2)
    rows = list(speculative.rounds(config, model, drafter))
    events = list(speculate(model, drafter, config.prompt, k=2, **config.run_settings))
    assert [row.round for row in rows] == events
    for row, event in zip(rows, events, strict=True):
        assert len(row.top) == len(event.proposed) + 1
        for index, shown in enumerate(row.top):
            assert 1 <= len(shown) <= 6
            assert all(one.p == event.p[index][one.token] for one in shown)
            assert all((one.q is None) == (index == len(event.proposed)) for one in shown)
            weight = np.maximum(event.p[index], event.q[index] if shown[0].q is not None else 0)
            assert [one.token for one in shown] == np.argsort(-weight, kind="stable")[
                : len(shown)
            ].tolist()


def test_cases_are_called_in_turn_and_a_warm_up_is_not_counted() -> None:
    called: list[str] = []
    cases = {
        "a": timing.Case(lambda: called.append("a"), calls=2),
        "b": timing.Case(lambda: called.append("b")),
    }
    seconds = timing.in_turn(cases, turns=3, warm_up=1)
    assert "".join(called) == "aab" * 4
    assert [len(times) for times in seconds.values()] == [3, 3]
    assert min(map(min, seconds.values())) >= 0


def test_spread_and_clock() -> None:
    assert Spread.of([3.0]) == Spread(3.0, 3.0, 3.0, 1)
    assert Spread.of([1, 2, 3, 4, 5]) == Spread(3, 2, 4, 5)
    events = list(timed(lambda: iter("abc")))
    assert [event for event, _ in events] == ["a", "b", "c"]
    assert all(seconds >= 0 for _, seconds in events)
