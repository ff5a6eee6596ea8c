"""The exactness page: a visitor's prefix, its areas, and a sample that follows p."""

from streamlit.testing.v1 import AppTest

from tests.pages.opening import complaints, finished, open_page, well
from tinyllm.experiments.exactness import CHECKPOINTS, PREFIXES


def tiles(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def test_it_begins_with_a_prefix_of_the_article_and_draws_them_all() -> None:
    app = finished(well(open_page("exactness")))
    assert app.text_area(key="prompt").value == PREFIXES[1]
    shown = tiles(app)
    assert shown["Draws"] == f"{CHECKPOINTS[-1]:,}"
    accepted, expected = (float(shown[name].rstrip("%")) for name in ("Accepted", "Σ min(p, q)"))
    assert abs(accepted - expected) < 0.5
    assert float(shown["χ² p-value"]) > 0.001


def test_an_idea_sets_the_prefix() -> None:
    app = open_page("exactness")
    before = tiles(app)
    app.button(key="_idea_0").click().run()
    assert app.text_area(key="prompt").value == PREFIXES[0]
    assert tiles(well(app))["Σ min(p, q)"] != before["Σ min(p, q)"]


def test_at_temperature_0_there_is_nothing_to_test() -> None:
    app = well(open_page("exactness", temperature="0"))
    assert tiles(app)["χ² p-value"] == "-"
    assert complaints(app) == []
    assert any("nothing to draw" in element.value for element in app.markdown)
