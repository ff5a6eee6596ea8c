"""A RunConfig that exists is valid; every refusal names field, value and range."""

import math
from inspect import signature
from typing import Any

import pytest

from tinyllm.errors import SettingError, TinyllmError
from tinyllm.experiments.settings import (
    CHOICES,
    CONTEXT_LENGTH,
    PROMPTS,
    RANGES,
    RunConfig,
    problem_of,
)
from tinyllm.generation import generate
from tinyllm.speculative import speculate


@pytest.mark.parametrize("field", RANGES)
def test_both_ends_are_valid_and_beyond_them_is_not(field: str) -> None:
    low, high = RANGES[field]
    for value in (low, high):
        assert getattr(RunConfig(**{field: value}), field) == value
    for value in (low - 1, high + 1):
        with pytest.raises(SettingError) as refusal:
            RunConfig(**{field: value})
        assert field in str(refusal.value)
        assert str(value) in str(refusal.value)
        assert str(high) in str(refusal.value)


@pytest.mark.parametrize("value", ["4", None, True, 2.5, math.nan])
def test_k_is_a_whole_number(value: Any) -> None:
    with pytest.raises(SettingError, match="k must"):
        RunConfig(k=value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_temperature_is_a_number_in_range(value: float) -> None:
    with pytest.raises(SettingError, match="temperature"):
        RunConfig(temperature=value)


@pytest.mark.parametrize("field", CHOICES)
def test_a_choice_is_one_of_its_list(field: str) -> None:
    with pytest.raises(SettingError, match=f"{field} must be one of"):
        RunConfig(**{field: "something"})


def test_prompts() -> None:
    for prompt in PROMPTS.values():
        assert RunConfig(prompt=prompt).prompt == prompt
    with pytest.raises(SettingError, match="empty"):
        RunConfig(prompt="")
    with pytest.raises(TinyllmError, match="U\\+00E9"):
        RunConfig(prompt="caf\u00e9")


def test_prompt_and_tokens_fill_the_context_and_no_more() -> None:
    assert RunConfig(prompt="x" * (CONTEXT_LENGTH - 100), tokens=100)
    with pytest.raises(SettingError, match="remove 1 characters"):
        RunConfig(prompt="x" * (CONTEXT_LENGTH - 99), tokens=100)


def test_the_settings_of_a_run_are_those_of_generate_and_speculate() -> None:
    config = RunConfig(tokens=8, top_k=0, kv_dtype="int8")
    settings = config.run_settings
    assert settings["max_new_tokens"] == 8
    assert settings["top_k"] is None  # 0 in the address is off
    for function in (generate, speculate):
        assert set(settings) < set(signature(function).parameters)


@pytest.mark.parametrize("field", [*RANGES, *CHOICES])
def test_every_value_in_range_may_stand_in_an_address(field: str) -> None:
    for value in RANGES.get(field) or CHOICES[field]:
        whole = isinstance(getattr(RunConfig(), field), int)
        assert problem_of(field, [str(int(value) if whole else value)]) is None


@pytest.mark.parametrize(
    ("field", "given", "problem"),
    [
        ("k", ["3", "5"], "k is given 2 times: give it once"),
        ("prompt", ["a", "b", "c"], "prompt is given 3 times: give it once"),
        ("kv_heads", ["2.0"], "kv_heads must be one of 4, 2, 1, not '2.0'"),
        ("kv_heads", ["02"], "kv_heads must be one of 4, 2, 1, not '02'"),
        ("drafter", ["lookup"], "drafter must be one of draft, ngram, not 'lookup'"),
        ("drafter", [""], "drafter must be one of draft, ngram, not ''"),
        ("seed", [""], "seed must be a number from 0 to 9999, not ''"),
        ("k", ["4.5"], "k must be a number from 1 to 8, not 4.5"),
        ("k", ["4.0"], None),
    ],
)
def test_what_is_wrong_in_an_address_is_said(
    field: str, given: list[str], problem: str | None
) -> None:
    assert problem_of(field, given) == problem
