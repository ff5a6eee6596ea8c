"""A choice and its link: what goes into an address comes out of it, and what is wrong is named."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.choice import CHOICES, ENGINES, FIELDS, OWN, RANGES, Choice, from_query
from tinyllm.memory.choice import problem_of as problem
from tinyllm.memory.gpus import gpus
from tinyllm.memory.links import Pinned, read_query
from tinyllm.memory.packed import MOST_LINK_CHARACTERS, pack, unpack
from tinyllm.memory.presets import preset, presets

CONFIG = dict(preset("Qwen3-8B").config)


@given(
    st.builds(
        Choice,
        model=st.sampled_from(list(presets())),
        context=st.integers(*map(int, RANGES["context"])),
        requests=st.integers(*map(int, RANGES["requests"])),
        engine=st.sampled_from(list(ENGINES)),
        kv_type=st.sampled_from(CHOICES["kv_type"]),
        gpu=st.sampled_from(list(gpus())),
        utilisation=st.floats(*RANGES["utilisation"]),
        kv_unified=st.booleans(),
        prompts=st.sampled_from(["full", "fixed:9", "uniform:1:9", "lognormal:5:9:20"]),
    )
)
@settings(max_examples=100, deadline=None)
def test_a_query_is_the_choice(choice):
    assert from_query(choice.to_query()) == choice


def test_the_defaults_need_no_query() -> None:
    assert Choice().to_query() == {}


@pytest.mark.parametrize("field", RANGES)
def test_ends_of_every_range(field):
    low, high = RANGES[field]
    kind = type(getattr(Choice(), field))
    for end in (low, high):
        assert problem(field, str(kind(end))) is None
    for beyond in (kind(low - 1), kind(high * 2 + 1)):
        assert str(problem(field, str(beyond))).startswith(field)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("raw", ["", "abc", "-1", "nan", "1e99", "[]", "x" * 9_999])
def test_nonsense_is_named(field, raw):
    said = problem(field, raw)
    assert said is not None
    assert said.startswith(field)
    assert len(said) < 400


def test_an_unknown_parameter_is_named():
    with pytest.raises(MemoryPlanError, match="'contxt' is not a parameter: one of model, context"):
        from_query({"contxt": "9"})


@pytest.mark.parametrize("name", presets())
def test_every_config_fits_into_a_link(name):
    config = dict(preset(name).config)
    packed = pack(config)
    assert packed is not None
    assert unpack(packed) == config


def test_a_choice_of_an_own_model_is_kept():
    kept = Pinned(Choice(model=OWN, context=4_096), json.dumps(CONFIG))
    again = read_query(kept.query())
    assert again.choice == kept.choice
    assert again.subject.plan == kept.subject.plan


@pytest.mark.parametrize(
    ("packed", "says"),
    [
        ("%%%", "damaged"),
        ("AAAA", "damaged"),
        (str(pack(CONFIG))[:-9], "cut off|damaged"),
        ("A" * (MOST_LINK_CHARACTERS + 1), "at most 6,000 characters"),
        (str(pack({"a": "0" * 4_300_000})), "cut off or too large"),
        (str(pack([])), "must be an object"),
    ],
)
def test_a_bad_config_in_a_link_is_named(packed, says):
    with pytest.raises(MemoryPlanError, match=says):
        unpack(packed)


def test_a_config_that_is_too_long_for_a_link_says_so():
    config = CONFIG | {"note": [str(number * 7_919) for number in range(9_000)]}
    with pytest.raises(MemoryPlanError, match="too long for a link"):
        Pinned(Choice(model=OWN), json.dumps(config)).query()


@pytest.mark.parametrize("query", ["model=none", "context=0", "x=1", "config=1&model=your+own"])
def test_a_bad_kept_choice_is_named(query):
    with pytest.raises(MemoryPlanError):
        read_query(query)
