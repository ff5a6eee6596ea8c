"""A RunConfig that exists is valid; every refusal names field, value and range."""

import math
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


def test_a_query_holds_what_differs_from_the_defaults() -> None:
    assert RunConfig().to_query() == {}
    assert RunConfig(k=2, kv_dtype="int8").to_query() == {"k": "2", "kv_dtype": "int8"}


def test_every_query_value_is_accepted_again() -> None:
    config = RunConfig(k=2, temperature=0.3, kv_heads=1, drafter="lookup", seed=5, top_p=0.5)
    assert [problem_of(field, raw) for field, raw in config.to_query().items()] == [None] * 6
