"""The pages with the real language model that `make llm` brings: loaded, watched, stopped."""

from collections.abc import Iterator

import pytest
import streamlit as st

from tests.pages.opening import complaints, finished, open_page, well
from tinyllm import memory
from tinyllm.cache import format_of
from tinyllm.experiments import models
from tinyllm.loading import stored_config
from tinyllm.ui import loaded

NAME = "SmolLM2-135M-Instruct"
PUBLISHED = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> Iterator[None]:
    loaded.model(NAME)  # before the pages ask for it, whose patience is for pages
    yield
    st.cache_resource.clear()  # half a gigabyte


def test_what_goes_with_it() -> None:
    choice = models.chosen(NAME)
    assert (choice.kv_heads, choice.drafters, choice.context_length) == ((3,), ("ngram",), 8192)
    assert models.names().index(NAME) > models.names().index("target") == 0
    assert models.to_install() == ()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "fp8_e4m3"])
@pytest.mark.parametrize("tokens", [1, 1000, 8192])
def test_its_cache_is_what_the_calculator_says(dtype: str, tokens: int) -> None:
    published = memory.plan(memory.preset(PUBLISHED).config)
    told = published.bytes(tokens=tokens, sequences=1, dtype=dtype)
    assert format_of(dtype).bytes(stored_config(NAME), tokens) == told
    if dtype == "bfloat16":
        assert told == tokens * 23_040


def test_the_race_answers_one_question_three_ways() -> None:
    app = finished(well(open_page("home", model=NAME, tokens="8")))
    assert complaints(well(app)) == []
    assert app.text_area(key="prompt").value == models.QUESTIONS["explain"]
    (said,) = [one.value for one in app.markdown if "What to notice" in one.value]
    assert "All three lanes write the same 8 tokens" in said
    assert app.session_state["_ran_home"].target == NAME


def test_a_run_of_it_is_stopped() -> None:
    app = well(open_page("speculative", model=NAME, tokens="64"))
    app.button(key="_run").click().run()
    app.button(key="_stop").click().run()
    assert app.button(key="_stop").disabled
    assert complaints(well(app)) == []


def test_draws_follow_its_law() -> None:
    app = finished(well(open_page("exactness", model=NAME)))
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Draws"] == "200,000"
    assert float(shown["χ² p-value"]) > 0.001


def test_without_it_the_page_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "language_models", dict)
    app = well(open_page("home", model=NAME))
    (said,) = complaints(app)
    assert said.startswith("model must be one of target")
    assert "make llm brings it" in said
    assert "make llm" in app.selectbox(key="model").help
