"""The model picker on every page that has one, with a model of word pieces among the choices."""

from collections.abc import Iterator

import pytest
import streamlit as st

import tinyllm
from tests import toy
from tests.pages.opening import complaints, finished, open_page, well
from tinyllm.experiments import models
from tinyllm.loading import Loaded, Progress, load_model
from tinyllm.model import Transformer
from tinyllm.ui import loaded

PAGES = ("home", "speculative", "kv_dtype", "prefill", "exactness")


@pytest.fixture(autouse=True)
def with_the_toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy among the models to choose from."""
    known = {**models._shipped(), toy.NAME: toy.CHOICE}

    def load(name: str) -> Transformer:
        return toy.toy_model() if name == toy.NAME else load_model(name)

    monkeypatch.setattr(models, "_shipped", lambda: known)

    def load_slowly(name: str) -> Iterator[Progress | Loaded]:
        yield Progress(0, 2, 1024)
        yield Loaded(load(name))

    monkeypatch.setattr(tinyllm, "load_model", load)
    monkeypatch.setattr(loaded, "loading", load_slowly)
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_with_a_model_and_its_own_prompt(page: str) -> None:
    app = well(open_page(page, model=toy.NAME))
    assert complaints(app) == []
    assert app.selectbox(key="model").value == toy.NAME
    assert app.selectbox(key="model").options == list(models.names())
    if page not in ("prefill", "exactness"):
        assert app.text_area(key="prompt").value == toy.CHOICE.prompt
    assert "prompt" not in app.query_params
    assert complaints(well(finished(app))) == []


@pytest.mark.parametrize("page", PAGES)
def test_another_model_takes_what_goes_with_it(page: str) -> None:
    app = open_page(page, kv_heads="1")
    app.selectbox(key="model").set_value(toy.NAME).run()
    assert complaints(well(app)) == []
    assert app.segmented_control(key="kv_heads").value == 3
    if page in ("home", "speculative"):
        assert app.segmented_control(key="drafter").value == "ngram"
        assert app.slider(key="tokens").value == toy.CHOICE.tokens[0]
        assert app.slider(key="tokens").max == toy.CHOICE.tokens[1]
    app.selectbox(key="model").set_value("target").run()
    assert complaints(well(app)) == []
    assert app.segmented_control(key="kv_heads").value == 4


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"model": "gpt-9"}, "model must be one of target"),
        ({"model": "../target"}, "model must be one of target"),
        ({"model": toy.NAME, "drafter": "draft"}, "drafter must be one of ngram with model toy"),
        ({"model": toy.NAME, "kv_heads": "4"}, "kv_heads must be one of 3 with model toy"),
        ({"model": toy.NAME, "tokens": "384"}, "tokens must lie between 8 and 64 with model toy"),
    ],
)
def test_what_does_not_go_together_is_said(parameters: dict[str, str], says: str) -> None:
    app = well(open_page("speculative", **parameters))
    (said,) = complaints(app)
    assert said.startswith(says)
    assert complaints(well(finished(app))) == [said]


def test_prepared_prompts_are_the_model_s() -> None:
    app = open_page("speculative", model=toy.NAME)
    app.button(key="_prompt_copy").click().run()
    assert app.text_area(key="prompt").value == toy.PROMPTS["copy"]
    assert complaints(well(app)) == []


def test_a_prompt_too_long_for_the_model_keeps_the_last_run() -> None:
    app = finished(open_page("speculative", model=toy.NAME))
    tiles = [metric.value for metric in app.metric]
    app.text_area(key="prompt").set_value("caf\u00e9 " * 200).run()
    (said,) = complaints(well(app))
    assert "the context holds 512" in said
    assert [metric.value for metric in app.metric] == tiles
    app.text_area(key="prompt").set_value("caf\u00e9 ").run()
    assert complaints(well(app)) == []


def test_a_page_without_a_picker_keeps_the_default_model() -> None:
    app = open_page("home", model=toy.NAME)
    app.switch_page("pages/kv_cache.py").run()
    assert complaints(well(app)) == []
    assert app.segmented_control(key="kv_heads").value == 4


def test_the_calculator_s_model_is_not_taken_for_ours() -> None:
    app = open_page("memory", model="openai/gpt-oss-20b")
    app.switch_page("pages/home.py").run()
    assert complaints(well(app)) == []
    assert app.selectbox(key="model").value == "target"
    app.selectbox(key="model").set_value(toy.NAME).run()
    app.switch_page("pages/memory.py").run()
    assert [element.message for element in app.exception] == []
    assert complaints(app) == []
