"""The pages that decode no text, paging and prefill: every control, every wrong input."""

from typing import Any

import pytest
import streamlit as st

import tinyllm
from tests.pages.opening import complaints, finished, open_page, well
from tinyllm.errors import WeightsError
from tinyllm.experiments.paging import PagingConfig
from tinyllm.experiments.prefill import PrefillConfig

PAGES = {"paging": PagingConfig, "prefill": PrefillConfig}
SLIDERS = [
    ("paging", "block_size"),
    ("paging", "shared"),
    ("prefill", "prefix"),
    ("prefill", "own"),
]
CHOICES = [("paging", "lengths"), ("prefill", "kv_heads")]
NUMBERS = ["shortest", "longest", "same", "median", "p95", "seed"]
WRONG = [
    ("paging", "block_size", "0"),
    ("paging", "block_size", "many"),
    ("paging", "lengths", "poisson"),
    ("paging", "shared", "9999"),
    ("prefill", "prefix", "-1"),
    ("prefill", "own", "0"),
    ("prefill", "kv_dtype", "float64"),
    ("prefill", "kv_heads", "3"),
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_a_result_at_first_paint(page: str) -> None:
    app = well(open_page(page))
    assert complaints(app) == []
    assert app.button(key="_run")
    assert len(app.metric) == 3


@pytest.mark.parametrize(("page", "field"), SLIDERS)
def test_sliders_at_both_ends(page: str, field: str) -> None:
    other = {"prefix": {"own": "32"}, "own": {"prefix": "256"}}.get(field, {})
    app = open_page(page, **other)
    for end in PAGES[page].ranges[field]:
        slider: Any = app.slider(key=field)
        slider.set_value(int(end)).run()
        assert complaints(well(app)) == []
        assert app.slider(key=field).value == end


@pytest.mark.parametrize(("page", "field"), CHOICES)
def test_every_choice(page: str, field: str) -> None:
    app = open_page(page)
    for choice in PAGES[page].choices[field]:
        app.segmented_control(key=field).set_value(choice).run()
        assert complaints(well(app)) == []


@pytest.mark.parametrize("choice", PrefillConfig.choices["kv_dtype"])
def test_every_dtype_can_stand_in_the_address(choice: str) -> None:
    assert complaints(well(open_page("prefill", kv_dtype=choice, own="8", prefix="16"))) == []


def test_numbers_of_every_distribution_are_in_their_ranges() -> None:
    app = open_page("paging")
    for field in NUMBERS:
        low, high = PagingConfig.ranges[field]
        box = app.number_input(key=field)
        assert (box.min, box.max, box.value) == (low, high, PagingConfig.default(field))


@pytest.mark.parametrize(("page", "field", "value"), WRONG)
def test_a_wrong_address_is_corrected_and_said(page: str, field: str, value: str) -> None:
    app = well(open_page(page, **{field: value}))
    assert len(complaints(app)) == 1
    assert field in complaints(app)[0]
    assert app.query_params.get(field) != value


def test_lengths_that_make_no_distribution_keep_the_last_run() -> None:
    app = finished(open_page("paging"))
    tiles = [metric.value for metric in app.metric]
    app.number_input(key="shortest").set_value(2048).run()
    assert "the longest length" in complaints(well(app))[0].lower()
    assert [metric.value for metric in app.metric] == tiles
    app.number_input(key="longest").set_value(2048).run()
    assert complaints(well(app)) == []
    assert app.metric[0].value == "0.0%"


def test_pasted_lengths() -> None:
    app = open_page("paging", lengths="yours")
    app.text_area(key="pasted").set_value("1024\n1024\n").run()
    assert complaints(well(app)) == []
    assert [metric.value for metric in app.metric][:2] == ["50.0%", "0.00%"]
    app.text_area(key="pasted").set_value("12\nmany").run()
    assert "Line 2 must be one whole number" in complaints(well(app))[0]
    assert app.text_area(key="pasted").value == "12\nmany"
    assert app.metric[0].value == "50.0%"


def test_parts_that_do_not_fit_are_said() -> None:
    app = open_page("prefill", prefix="480")
    assert "lower own to 32 or prefix to 448" in complaints(well(app))[0]
    app.slider(key="own").set_value(32).run()
    assert complaints(well(app)) == []


@pytest.mark.parametrize("page", PAGES)
def test_ideas_set_the_controls(page: str) -> None:
    app = open_page(page)
    for number in range(3):
        before = dict(app.query_params)
        app.button(key=f"_idea_{number}").click().run()
        assert complaints(well(app)) == []
        assert dict(app.query_params) != before


@pytest.mark.parametrize("page", PAGES)
def test_run_and_stop(page: str) -> None:
    app = open_page(page)
    app.button(key="_run").click().run()
    assert not app.button(key="_stop").disabled
    app.button(key="_stop").click().run()
    well(app)
    assert app.button(key="_stop").disabled


def test_an_address_is_a_map() -> None:
    tiles = []
    for _ in range(2):
        st.cache_resource.clear()  # else the second shows the first one's result
        app = finished(open_page("paging", seed="7", lengths="fixed"))
        tiles.append([metric.value for metric in app.metric])
    assert tiles[0] == tiles[1]


@pytest.mark.parametrize("page", PAGES)
def test_presenter_mode_folds_the_explanation(page: str) -> None:
    app = well(open_page(page, present="true"))
    assert not app.expander[-1].proto.expanded


def test_a_missing_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise WeightsError(f"no model {name!r}")

    monkeypatch.setattr(tinyllm, "load_model", missing)
    st.cache_resource.clear()
    assert complaints(open_page("prefill")) == ["no model 'target'"]
    assert complaints(well(open_page("paging"))) == []


def test_a_format_that_blocks_cannot_hold_is_left_behind() -> None:
    """Chosen on another page, where it can be had."""
    app = open_page("kv_cache", kv_dtype="int4_channel")
    app.switch_page("pages/prefill.py").run()
    well(app)
    (said,) = complaints(app)
    assert "not 'int4_channel'. This page uses 'float32'." in said
    app.selectbox(key="kv_dtype").set_value("int8").run()
    assert complaints(well(app)) == []
    refused = open_page("prefill", kv_dtype="int4_channel")
    assert "kv_dtype must be one of" in complaints(well(refused))[0]
