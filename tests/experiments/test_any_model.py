"""The experiments behind the pages with a model of word pieces: no alphabet, no 96, no 512."""

import json

import pytest

from tests import toy
from tinyllm import memory
from tinyllm.cache import format_of
from tinyllm.config import PRESETS
from tinyllm.experiments import (
    exactness,
    kv_dtype,
    kv_dtype_record,
    models,
    prefix,
    race,
    request,
    speculative,
    speculative_record,
    texts,
)
from tinyllm.experiments.prefill import PrefillConfig
from tinyllm.experiments.settings import RunConfig
from tinyllm.generation import generate
from tinyllm.loading import MODELS
from tinyllm.model import Transformer
from tinyllm.sampling import Sampling
from tinyllm.speculative import NGramDrafter


@pytest.fixture(autouse=True)
def with_the_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**models._shipped(), toy.NAME: toy.CHOICE}
    monkeypatch.setattr(models, "_shipped", lambda: known)


@pytest.fixture
def model() -> Transformer:
    return toy.toy_model()


def config(**settings: object) -> RunConfig:
    given = {"model": toy.NAME, "prompt": toy.CHOICE.prompt, "tokens": 24} | settings
    return RunConfig(**given)


def greedy(model: Transformer, tokens: int = 24) -> list[int]:
    prompt = "<user>" + toy.CHOICE.prompt + "<answer>"
    ids = model.tokenizer.encode(prompt)
    made = generate(model, ids, max_new_tokens=tokens, stop=[toy.STOP])
    return [token.id for token in made]


def test_settings_take_what_is_usual_for_the_model() -> None:
    assert (config().drafter, config().kv_heads, config().target) == ("ngram", 3, toy.NAME)
    assert RunConfig().with_(model=toy.NAME, drafter="", kv_heads=0, tokens=8).drafter == "ngram"


def test_a_conversation_goes_through_the_template(model: Transformer) -> None:
    asked = request.request(config(), model)
    assert model.tokenizer.decode(asked["prompt"]) == f"<user>{toy.CHOICE.prompt}<answer>"
    assert asked["stop"] == {toy.STOP}


@pytest.mark.parametrize("way", ["in turn", "live"])
def test_a_race_writes_one_text(model: Transformer, way: str) -> None:
    run, drafter = config(temperature=0.0), NGramDrafter()
    record = race.RaceRecord(model.tokenizer)
    events = race.race(run, model, drafter, 1) if way == "in turn" else None
    for step in events or race.live_race(run, model, drafter):
        record.take(step)
    lanes = record.lanes
    assert [lane.name for lane in lanes] == list(race.LANES)
    assert {lane.tokens for lane in lanes} == {tuple(greedy(model))}
    assert race.first_difference(lanes) is None
    feed = model.tokenizer.stream().feed
    assert {lane.text for lane in lanes} == {"".join(map(feed, greedy(model)))}
    for lane in lanes:
        assert list(map(len, lane.pieces)) == [len(step.tokens) for step in steps(record, lane)]


def steps(record: race.RaceRecord, lane: race.Lane) -> list[race.Step]:
    return [step for step in record.steps if step.lane == lane.name]


def test_live_the_lane_that_took_least_makes_the_next_step(model: Transformer) -> None:
    spent = dict.fromkeys(race.LANES, 0.0)
    total = dict.fromkeys(race.LANES, 0.0)
    for step in race.race(config(temperature=0.0), model, NGramDrafter(), 1):
        total[step.lane] += 1
    left = dict(total)
    for step in race.live_race(config(temperature=0.0), model, NGramDrafter()):
        going = [lane for lane in race.LANES if left[lane]]
        assert spent[step.lane] == min(spent[lane] for lane in going)
        spent[step.lane] += step.seconds
        left[step.lane] -= 1
    assert set(left.values()) == {0}


def test_lanes_that_part_are_told_by_their_token(model: Transformer) -> None:
    record = race.RaceRecord(model.tokenizer)
    for step in race.race(config(temperature=0.0), model, NGramDrafter(), 1):
        record.take(step)
    first, second, third = record.lanes
    shorter = race.Lane(
        second.name,
        second.tokens[:5],
        second.pieces[:5],
        second.accepted[:5],
        second.ends[:5],
        second.tokens_per_second,
    )
    assert race.first_difference((first, shorter, third)) == 5


def test_a_character_of_several_tokens_is_shown_when_it_is_whole(model: Transformer) -> None:
    tokens = [*"日本".encode(), 256]
    steps = [race.Step("cached", 0, (token,), 0, 0.1) for token in tokens]
    (lane,) = race.lanes(steps, model.tokenizer)
    assert [piece for (piece,) in lane.pieces] == ["", "", "日", "", "", "本", " the"]
    (begun,) = race.lanes(steps[:5], model.tokenizer)
    assert begun.text == "日"
    assert texts.text_of([256, toy.STOP], model.tokenizer) == " the"
    assert texts.text_of(tokens[:5], model.tokenizer) == "日"


def test_rounds_keep_the_top_of_both_laws_and_no_more(model: Transformer) -> None:
    run = config(k=3, temperature=0.0, tokens=64)
    rows = list(speculative.rounds(run, model, NGramDrafter(shortest=1)))
    assert sum(len(row.round.tokens) for row in rows) <= 64
    assert any(row.round.proposed for row in rows)
    for row in rows:
        assert row.round.p.size == row.round.q.size == 0
        assert len(row.top) == len(row.round.proposed) + 1
        for index, proposed in enumerate(row.round.proposed):
            certain = [one for one in row.top[index] if one.q == 1]
            assert [one.token for one in certain] == [proposed]


def test_a_watched_run_counts_every_k(model: Transformer) -> None:
    record = speculative_record.Record(model.tokenizer)
    for event in speculative.watch(config(tokens=8), model, NGramDrafter()):
        record.take(event)
    assert list(record.points) == list(speculative.KS)
    assert record.comparison is not None
    shown = speculative_record.rounds_table(record)
    assert [row["accepted"] for row in shown] == [row.round.accepted for row in record.rows]


def test_prefill_and_prefix_take_tokens_not_characters(model: Transformer) -> None:
    asked = PrefillConfig(prefix=48, own=9, model=toy.NAME)
    record = prefix.PrefillRecord(asked.prefix)
    for event in prefix.measure(model, [48], 9, 1, "float32"):
        record.take(event)
    assert record.reuse is not None
    assert (record.reuse.own, record.reuse.found) == (9, 48)


def test_the_laws_behind_a_prefix(model: Transformer) -> None:
    prefix = "the value the value the"
    laws = exactness.laws(model, NGramDrafter(), prefix, Sampling(1.0), "float32")
    p = Sampling(1.0).distribution(model.forward(model.tokenizer.encode(prefix), rows=1)[0])
    assert laws.p == pytest.approx(p, abs=1e-6)
    (value,) = model.tokenizer.encode(" value")
    assert laws.q[value] == laws.q.sum() == 1
    with pytest.raises(ValueError, match="proposes nothing"):
        exactness.laws(model, NGramDrafter(), "xyz", Sampling(1.0), "float32")


def test_of_a_large_model_less_is_measured(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert speculative.pairs_for(model) == speculative.PAIRS
    assert prefix.turns_for(model) == prefix.TURNS
    monkeypatch.setattr(models, "LARGE", 1_000)
    assert kv_dtype.extent_for(model) == kv_dtype.LARGE
    record = prefix.PrefillRecord(32)
    for event in prefix.watch(PrefillConfig(prefix=32, own=4, model=toy.NAME), model):
        record.take(event)
    assert [row.tokens for row in record.prefills] == list(prefix.LARGE_SIZES)
    assert record.prefills[0].at_once_seconds.count == prefix.LARGE_TURNS
    watched = speculative_record.Record(model.tokenizer)
    for event in speculative.watch(config(tokens=8), model, NGramDrafter()):
        watched.take(event)
    assert tuple(watched.points) == speculative.LARGE_KS
    assert watched.comparison is not None
    assert watched.comparison.speedup.count == speculative.LARGE_PAIRS


def test_formats_of_a_short_extent(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_dtype, "extent_for", lambda _model: kv_dtype.LARGE)
    record = kv_dtype_record.FormatRecord()
    for event in kv_dtype.watch(config(kv_dtype="int4"), model):
        record.take(event)
    row = record.formats["int4"]
    assert (row.prompts, row.step_seconds.count) == (2, 5)
    assert row.max_logit_difference > 0
    assert record.formats["float32"].identical == 2
    assert record.texts is not None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "fp8_e4m3"])
@pytest.mark.parametrize("name", ["target", "draft"])
def test_the_cache_is_what_the_calculator_says(name: str, dtype: str, target: Transformer) -> None:
    stored = json.loads((MODELS / name / "config.json").read_text("utf-8"))
    del stored["n_kv_head"]  # as many as heads, which is GPT-2's own rule
    told = memory.plan(stored).bytes(tokens=100, sequences=1, dtype=dtype)
    assert format_of(dtype).bytes(PRESETS[name], 100) == told
    run = RunConfig(kv_dtype=dtype, tokens=96, prompt="abcd")
    if name == "target":
        span = speculative.CacheSpan.of(run, target)
        assert span.last == told
        assert span.per_token == told / 100
