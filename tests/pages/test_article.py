"""The article page: a stored run at first, then what the visitor measures."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.opening import complaints, finished, open_page, well
from tinyllm.experiments.article import article
from tinyllm.experiments.report import STORED, Report
from tinyllm.ui import article as drawn


def measured(app: AppTest) -> tuple[int, int]:
    """The first tile: figures measured, of how many."""
    done, count = app.metric[0].value.split(" / ")
    return int(done), int(count)


def test_the_stored_run_is_shown_and_called_so() -> None:
    app = well(open_page("article"))
    assert measured(app) == (len(article().figures), len(article().figures))
    assert any("A stored run of" in caption.value for caption in app.caption)
    assert app.button(key="_stop").disabled


@pytest.mark.parametrize(("experiment", "figures"), [("prefix", 3), ("memory", 2), ("paging", 3)])
def test_one_experiment_is_measured_when_it_is_chosen(experiment: str, figures: int) -> None:
    app = open_page("article")
    app.selectbox(key="experiment").set_value(experiment).run()
    assert measured(well(finished(app))) == (figures, figures)
    assert any("Measured from" in caption.value for caption in app.caption)
    assert complaints(app) == []


def test_a_run_of_all_begins_with_nothing_and_stops() -> None:
    app = open_page("article")
    app.button(key="_run").click().run()
    done, count = measured(well(app))
    assert done < count
    app.button(key="_stop").click().run()
    assert "Stopped" in well(app).caption[0].value


def test_a_wrong_experiment_in_the_address_is_said() -> None:
    app = open_page("article", experiment="speed")
    assert "experiment must be one of all, kv-cache" in complaints(well(app))[0]


def test_what_to_notice_is_said_of_every_choice() -> None:
    report = Report.load(STORED)
    for name in {figure.experiment for figure in article().figures}:
        found = report.of((name,))
        assert drawn.finding(found) != drawn.finding(Report().of((name,)))
        assert len(drawn.ratio_figure(found)["data"]) == 3
