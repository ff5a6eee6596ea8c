"""The drafters page: every control, every wrong input, and a table that is the record's."""

from typing import Any

import pytest

from tests.pages.opening import complaints, finished, open_page, well
from tinyllm.experiments.drafters import DraftersConfig, entrants

SHORT = {"tokens": "8"}
ENTRANTS = len(entrants(DraftersConfig().target))


def test_every_drafter_has_its_row_in_the_end() -> None:
    app = finished(well(open_page("drafters", **SHORT)))
    assert complaints(app) == []
    table = app.table[0].value
    assert len(table) == ENTRANTS
    assert all("×" in speed for speed in table["speed against plain"])


@pytest.mark.parametrize("field", ["k", "temperature", "width"])
def test_sliders_at_both_ends(field: str) -> None:
    app = open_page("drafters", **SHORT)
    for end in DraftersConfig.ranges[field]:
        slider: Any = app.slider(key=field)
        slider.set_value(type(slider.value)(end)).run()
        assert complaints(well(app)) == []


@pytest.mark.parametrize("field", ["target", "verify"])
def test_every_choice(field: str) -> None:
    app = open_page("drafters", **SHORT)
    for choice in DraftersConfig.choices[field]:
        app.segmented_control(key=field).set_value(choice).run()
        assert complaints(well(app)) == []


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("target", "gpt-5", "target must be one of base, target, not 'gpt-5'"),
        ("k", "0", "k must lie between 1 and 8, not at 0"),
        ("verify", "all", "verify must be one of token, block, not 'all'"),
        ("prompt", "é", "The models know printable ASCII and newline only; remove 'é'"),
    ],
)
def test_a_wrong_address_is_corrected_and_said(field: str, value: str, told: str) -> None:
    app = well(open_page("drafters", **SHORT, **{field: value}))
    (said,) = complaints(app)
    assert said.startswith(told)


def test_greedy_texts_are_those_of_plain_decoding() -> None:
    app = finished(well(open_page("drafters", temperature="0", **SHORT)))
    (same,) = [one.value for one in app.metric if one.label == "Texts as plain"]
    assert same == f"{ENTRANTS} of {ENTRANTS}"
