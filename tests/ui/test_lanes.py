"""What the browser is sent of a race: pieces of text, caches in words, live or whole."""

import pytest

from tests import toy
from tinyllm.cache import format_of
from tinyllm.experiments import models, race
from tinyllm.experiments.request import prompt_ids
from tinyllm.experiments.settings import RunConfig
from tinyllm.speculative import NGramDrafter
from tinyllm.ui import findings, lanes
from tinyllm.ui.text import format_bytes


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    known = {**models._shipped(), toy.NAME: toy.CHOICE}
    monkeypatch.setattr(models, "_shipped", lambda: known)
    settings = {"prompt": toy.CHOICE.prompt, "temperature": 0.0, "kv_dtype": "int8"}
    return RunConfig(model=toy.NAME, tokens=12, **settings)


def run(config: RunConfig, steps: int | None = None) -> tuple[race.Lane, ...]:
    record = race.RaceRecord(toy.ToyTokenizer())
    for step in race.live_race(config, toy.toy_model(), NGramDrafter()):
        record.take(step)
        if len(record.steps) == steps:
            break
    return record.lanes


def test_a_whole_race(config: RunConfig) -> None:
    record = run(config)
    shown = lanes.lanes_data(record, config, toy.toy_model(), live=False)
    assert [lane["most"] for lane in shown] == [lane.n_tokens for lane in record]
    assert shown[0]["ratio"] == "1.0 ×"
    assert shown[0]["caches"] == []
    held = len(prompt_ids(config.prompt, toy.toy_model())) + record[1].n_tokens - 1
    size = format_of("int8").bytes(toy.CONFIG, held)
    assert shown[1]["caches"][-1] == shown[2]["caches"][-1] == f"cache: {format_bytes(size)}"
    assert "All three lanes write the same" in findings.race(record)


def test_a_race_that_has_just_begun(config: RunConfig) -> None:
    record = run(config, steps=1)
    shown = lanes.lanes_data(record, config, toy.toy_model(), live=True)
    assert [len(lane["pieces"]) for lane in shown] == [1, 0, 0]
    assert {lane["most"] for lane in shown} == {12}
    assert [lane["took"] for lane in shown[1:]] == ["-", "-"]
    assert "1 tokens in" in findings.race(record, finished=False)


@pytest.mark.parametrize(("factor", "says"), [(1.0, "as fast"), (2.5, "2.5 times"), (31, "31 t")])
def test_the_replay_s_speed_is_said(factor: float, says: str) -> None:
    assert says in lanes._replay_words(factor)
