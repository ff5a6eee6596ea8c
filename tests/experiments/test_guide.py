"""The decision table is whole, its flags can be typed, and its questions get answers."""

import json
import re
import shlex

import pytest

from tinyllm.config import PRESETS
from tinyllm.errors import SettingError
from tinyllm.experiments import answers, guide
from tinyllm.experiments.catalogue import EXPERIMENTS
from tinyllm.experiments.head_quality import SCRATCH, Variant
from tinyllm.model import random_model
from tinyllm.ui.navigation import entry_of


@pytest.mark.parametrize("symptom", guide.SYMPTOMS)
def test_every_symptom_has_techniques(symptom: str) -> None:
    found = guide.advice([symptom])
    assert found
    assert all(symptom in technique.symptoms for technique in found)


def test_what_helps_with_most_comes_first() -> None:
    found = guide.advice(guide.SYMPTOMS)
    assert len(found) == len(guide.TECHNIQUES)
    helped = [len(technique.symptoms) for technique in found]
    assert helped == sorted(helped, reverse=True)
    assert guide.advice([]) == []


def test_an_unknown_symptom_is_named() -> None:
    with pytest.raises(SettingError, match="'headache' is no symptom of the guide: choose slow_f"):
        guide.advice(["headache"])


@pytest.mark.parametrize("technique", guide.TECHNIQUES, ids=lambda technique: technique.name)
def test_every_technique_is_whole(technique: guide.Technique) -> None:
    assert set(technique.symptoms) <= set(guide.SYMPTOMS)
    assert entry_of(technique.page).title
    assert technique.does.endswith(".")
    assert technique.costs.endswith(".")
    assert [flag.engine for flag in technique.flags] == list(guide.ENGINES)
    for flag in technique.flags:
        assert flag.command or flag.note
        words = shlex.split(flag.command)  # quotes are closed
        if "--speculative-config" in words:
            config = json.loads(words[words.index("--speculative-config") + 1])
            assert config["num_speculative_tokens"] > 0


def test_every_engine_names_its_documentation() -> None:
    assert tuple(guide.SOURCES) == guide.ENGINES


def test_every_question_is_answered_with_its_numbers() -> None:
    target = random_model(PRESETS["target"], 1)
    small = random_model(PRESETS["target-kv1"], 2)
    small.name = "small"
    target.name = "target"
    asked = answers.Asked(
        target=target,
        draft=random_model(PRESETS["draft"], 3),
        known=[Variant(one.name, one.config, SCRATCH, 1.0) for one in (target, small)],
        variants=[target, small],
        prompts=1,
        tokens=8,
        prefill=16,
        windows=2,
    )
    given = list(answers.rows(asked))
    assert len({answer.question for answer in given}) == len(given) == 9
    for answer in given:
        assert answer.question.endswith("?")
        text = answer.text()
        assert not re.search(r"[{}]", text)
        assert re.search(r"\d", text)
        row = answer.row()
        assert row["answer"] == text
        assert row["low"] <= row["median"] <= row["high"]
        json.dumps(row, allow_nan=False)
    assert "all 96 tokens are the same" in given[0].text()
    assert "1,572,864" in given[2].text()
    assert "144 KiB" in given[2].text()
    assert "1 of 1 texts of 8 tokens" in given[3].text()


@pytest.mark.parametrize("name", ["kv-cache", "kv-heads", "guide"])
def test_the_catalogue_gives_flat_rows(name: str) -> None:
    row = next(iter(EXPERIMENTS[name].rows()))
    assert all(value is None or isinstance(value, str | int | float) for value in row.values())
    json.dumps(row, allow_nan=False)
