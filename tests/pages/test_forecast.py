"""The forecast page: at first paint, its planner at the ends, and what is wrong in an address."""

import pytest

from tests.pages.opening import complaints, open_page, well
from tinyllm.experiments import published
from tinyllm.experiments.forecast import PAIRS
from tinyllm.experiments.planner import PlanSettings

SHORT = {"tokens": "8"}


def test_it_plans_at_first_paint_and_takes_any_address() -> None:
    app = well(open_page("forecast", pair="target + ngram", alpha="0.6", curve="linear", **SHORT))
    assert complaints(app) == []
    assert app.selectbox(key="pair").value == "target + ngram"
    assert app.slider(key="alpha").value == 0.6
    assert any("This curve knows no batch" in element.value for element in app.markdown)
    count = len(list(published.rows()))
    assert app.expander[0].label == f"{count} of {count} published numbers, computed anew"


@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair(pair: str) -> None:
    app = well(open_page("forecast", pair=pair, **SHORT))
    assert complaints(app) == []


@pytest.mark.parametrize("end", [0, 1])
def test_the_planner_at_its_ends(end: int) -> None:
    whole = ("k", "batch")
    ends = {
        name: str(int(values[end]) if name in whole else values[end])
        for name, values in PlanSettings.ranges.items()
    }
    for curve in PlanSettings.choices["curve"]:
        app = well(open_page("forecast", curve=curve, **ends, **SHORT))
        assert complaints(app) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pair", "target + nobody"),
        ("temperature", "9"),
        ("alpha", "1.5"),
        ("alpha", "nan"),
        ("c", "-1"),
        ("k", "17"),
        ("k", "2.5"),
        ("curve", "round"),
        ("gpu", "Voodoo 2"),
        ("billions", "0"),
        ("batch", "many"),
    ],
)
def test_a_wrong_address_is_corrected_and_said(field: str, value: str) -> None:
    app = well(open_page("forecast", **{field: value}, **SHORT))
    (said,) = complaints(app)
    assert said.startswith(f"{field} must ")
    assert "This page uses" in said
