"""Every page at first paint, every control at its ends, every wrong input."""

from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import tinyllm
from tests.pages.opening import PAGES, PATIENCE, complaints, finished, open_page, well
from tinyllm.errors import WeightsError
from tinyllm.experiments.settings import CHOICES, RANGES, RunConfig
from tinyllm.ui import navigation, state

# The controls of every page, by where their values come from.
SLIDERS = {
    "home": ("k", "tokens"),
    "kv_cache": ("temperature", "top_k", "top_p"),
    "kv_dtype": ("temperature", "top_k", "top_p"),
    "speculative": ("k", "temperature", "tokens", "top_k", "top_p"),
    "exactness": ("temperature", "top_k", "top_p"),
    "sweep": ("tokens", "top_k", "top_p"),
    "pitfalls": ("k", "tokens"),
}
SEGMENTS = {
    "home": ("kv_heads", "drafter"),
    "kv_cache": ("kv_heads",),
    "kv_heads": ("context",),
    "kv_dtype": ("kv_heads",),
    "speculative": ("kv_heads", "drafter"),
    "exactness": ("kv_heads",),
    "sweep": ("kv_heads",),
}
PROMPTED = [page for page in PAGES if page != "sweep"]  # whose prompts are its own
WRONG = {
    "k": ("0", "9", "50", "-1", "two", "1e99", "nan"),
    "temperature": ("-0.1", "9", "warm", "inf"),
    "kv_dtype": ("float64", "INT8"),
    "kv_heads": ("3", "0", "all", "2.0", "02"),
    "drafter": ("none", "lookup"),
    "tokens": ("0", "99999"),
    "seed": ("-1", "1.5", ""),
    "top_k": ("-3", "97"),
    "top_p": ("0", "2"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_a_result_at_first_paint(page: str) -> None:
    app = well(open_page(page))
    assert complaints(app) == []
    assert app.button(key="_run")


@pytest.mark.parametrize(("page", "field"), [(p, f) for p, fs in SLIDERS.items() for f in fs])
def test_sliders_at_both_ends(page: str, field: str) -> None:
    app = open_page(page)
    low, high = RANGES[field]
    for end in (low, high):
        slider: Any = app.slider(key=field)
        slider.set_value(type(slider.value)(end)).run()
        well(app)
        assert complaints(app) == []
        assert app.slider(key=field).value == end


@pytest.mark.parametrize(("page", "field"), [(p, f) for p, fs in SEGMENTS.items() for f in fs])
def test_every_choice(page: str, field: str) -> None:
    app = open_page(page)
    for choice in CHOICES[field]:
        app.segmented_control(key=field).set_value(choice).run()
        well(app)
        assert complaints(app) == []


@pytest.mark.parametrize("page", ["home", "kv_cache", "kv_dtype", "speculative", "sweep"])
def test_every_kv_dtype(page: str) -> None:
    app = open_page(page)
    for dtype in CHOICES["kv_dtype"]:
        app.selectbox(key="kv_dtype").set_value(dtype).run()
        well(app)
        assert complaints(app) == []


def test_everything_at_its_highest_together() -> None:
    ends = {field: str(high) for field, (_, high) in RANGES.items()}
    app = well(open_page("speculative", kv_heads="1", kv_dtype="int8", **ends))
    assert complaints(app) == []


def test_everything_at_its_lowest_together() -> None:
    ends = {field: str(low) for field, (low, _) in RANGES.items()}
    app = well(open_page("speculative", drafter="ngram", prompt="x", **ends))
    assert complaints(app) == []


@pytest.mark.parametrize(("field", "value"), [(f, v) for f, vs in WRONG.items() for v in vs])
def test_a_wrong_address_is_corrected_and_said(field: str, value: str) -> None:
    app = well(open_page("speculative", **{field: value}))
    assert len(complaints(app)) == 1
    assert field in complaints(app)[0]
    assert app.query_params.get(field) != value


@pytest.mark.parametrize("field", ["k", "kv_dtype", "seed", "prompt"])  # one of a kind
def test_a_parameter_given_twice_is_said(field: str) -> None:
    values = RANGES.get(field) or CHOICES.get(field) or ("x = 1", "y = 2")
    app = well(open_page("speculative", **{field: [str(value) for value in values[:2]]}))
    (said,) = complaints(app)
    assert said.startswith(f"{field} is given 2 times: give it once. This page uses ")


def test_what_was_wrong_is_said_until_its_control_is_moved() -> None:
    """The widgets drop a wrong value at once, and a page that measures starts again soon."""
    app = open_page("speculative", k="50")
    said = complaints(app)
    app.run()
    app.slider(key="temperature").set_value(0.0).run()
    assert complaints(app) == said != []
    app.slider(key="k").set_value(5).run()
    app.slider(key="k").set_value(4).run()
    assert complaints(well(app)) == []


@pytest.mark.parametrize("page", PROMPTED)
@pytest.mark.parametrize("opened_with", ["def f(", ""])
def test_run_with_a_prompt_that_cannot_run_runs_nothing(
    page: str, opened_with: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[RunConfig] = []
    begin = state.Play.__init__

    def noted(play: state.Play[Any], config: RunConfig, *rest: Any) -> None:
        begun.append(config)
        begin(play, config, *rest)

    monkeypatch.setattr(state.Play, "__init__", noted)
    app = open_page(page, prompt=opened_with)
    app.text_area(key="prompt").set_value("caf\u00e9").run()
    finished(app)
    said, measured = complaints(app), [caption.value for caption in app.caption]
    begun.clear()
    app.button(key="_run").click().run()
    assert begun == []
    assert complaints(well(app)) == said != []
    assert [caption.value for caption in app.caption] == measured
    app.text_area(key="prompt").set_value("x = ").run()
    app.button(key="_run").click().run()
    assert begun[-1].prompt == "x = "


@pytest.mark.parametrize(
    ("page", "field"),
    [(page, field) for page in ("kv_heads", "speculative") for field in SEGMENTS[page]],
)
def test_every_choice_can_stand_in_the_address(page: str, field: str) -> None:
    for choice in CHOICES[field]:
        app = open_page(page, **{field: str(choice)})
        assert complaints(well(app)) == []
        control = app.selectbox if field == "kv_dtype" else app.segmented_control
        assert control(key=field).value == choice


@pytest.mark.parametrize("page", PAGES)
def test_ideas_set_the_controls(page: str) -> None:
    app = open_page(page, seed="3") if page != "home" else open_page(page)
    for number in range(3):
        before = [dict(app.query_params)]
        app.button(key=f"_idea_{number}").click().run()
        assert complaints(well(app)) == []
        assert dict(app.query_params) != before[0]


def test_an_address_is_a_run() -> None:
    address = {"k": "2", "temperature": "0", "kv_dtype": "int8", "seed": "7"}
    app = finished(open_page("speculative", **address))
    st.cache_resource.clear()  # else the second shows the first one's result
    again = finished(open_page("speculative", **address))
    assert [one.value for one in app.metric][:2] == [one.value for one in again.metric][:2]
    assert app.slider(key="k").value == 2
    assert app.selectbox(key="kv_dtype").value == "int8"


@pytest.mark.parametrize("page", PROMPTED)
@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        ("", "write at least one character"),
        ("caf\u00e9 \u2026", "remove '\u00e9' (U+00E9)"),
        ("x" * 600, "remove"),
    ],
)
def test_a_prompt_that_cannot_run_is_kept_with_what_to_do(
    page: str, prompt: str, says: str
) -> None:
    app = open_page(page)
    app.text_area(key="prompt").set_value(prompt).run()
    well(app)
    assert len(complaints(app)) == 1
    assert says in complaints(app)[0]
    assert app.text_area(key="prompt").value == prompt
    app.text_area(key="prompt").set_value("def f(").run()
    assert complaints(well(app)) == []


def test_sample_prompts_set_the_control() -> None:
    app = open_page("speculative")
    app.button(key="_prompt_loop").click().run()
    assert app.text_area(key="prompt").value.startswith("for name in")
    assert complaints(well(app)) == []


def test_run_and_stop() -> None:
    app = open_page("speculative")
    app.button(key="_run").click().run()
    assert not app.button(key="_stop").disabled
    app.button(key="_stop").click().run()
    well(app)
    assert app.button(key="_stop").disabled


def test_values_survive_a_switch_of_pages() -> None:
    app = open_page("speculative")
    app.slider(key="k").set_value(7).run()
    app.switch_page("pages/home.py").run()
    assert app.slider(key="k").value == 7


def test_another_page_drops_the_run_in_play() -> None:
    app = open_page("speculative")
    app.button(key="_run").click().run()
    page, watched = app.session_state["_play"]
    assert page == "speculative"
    assert watched.watched
    assert watched.running
    app.switch_page("pages/kv_cache.py").run()
    given = len(watched.result.rows)
    app.switch_page("pages/speculative.py").run()
    well(app)
    held = app.session_state["_play"][1] if "_play" in app.session_state else None
    assert held is not watched
    assert len(watched.result.rows) == given  # nothing more was asked of it


@pytest.mark.parametrize("page", PAGES)
def test_presenter_mode_folds_the_explanation(page: str) -> None:
    app = well(open_page(page, present="true"))
    assert not app.expander[-1].proto.expanded


@pytest.mark.parametrize("page", PAGES)
def test_a_missing_model_is_named(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise WeightsError(f"no model {name!r}")

    monkeypatch.setattr(tinyllm, "load_model", missing)
    st.cache_resource.clear()
    app = open_page(page)
    assert [element.message for element in app.exception] == []
    assert complaints(app) == ["no model 'target'"]


def test_a_page_file_by_itself_says_how_to_start() -> None:
    page = navigation.ROOT / "pages" / "home.py"
    app = AppTest.from_file(str(page), default_timeout=PATIENCE).run()
    assert "streamlit run app.py" in complaints(app)[0]


def test_the_list_of_pages_has_no_page_twice_and_misses_none() -> None:
    listed = [entry.stem for section in navigation.SECTIONS.values() for entry in section]
    assert len(listed) == len(set(listed))
    files = {path.stem for path in (navigation.ROOT / "pages").glob("*.py")}
    assert files == {entry.stem for entry in navigation.entries()}
