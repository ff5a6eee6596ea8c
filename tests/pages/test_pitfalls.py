"""The pitfalls page: every pitfall by its address, its results and its code."""

import pytest

from tests.pages.opening import complaints, open_page, well
from tinyllm.experiments.pitfalls import PITFALLS
from tinyllm.ui.pitfall_words import WORDS
from tinyllm.ui.pitfalls import option, title


def test_every_pitfall_has_its_words() -> None:
    assert list(WORDS) == list(PITFALLS)
    assert all(wrong.endswith(".") and not name.endswith(".") for name, wrong in WORDS.values())


@pytest.mark.parametrize("name", PITFALLS)
def test_an_address_is_a_pitfall(name: str) -> None:
    app = well(open_page("pitfalls", pitfall=option(name), tokens="24"))
    assert complaints(app) == []
    assert app.selectbox(key="pitfall").value == option(name)
    assert any(title(name) in element.value for element in app.markdown)
    fault, right = (element.value for element in app.code[:2])
    assert fault.startswith(("def ", "class "))
    assert right.startswith(("def ", "class ", "@"))


def test_a_wrong_pitfall_in_the_address_is_said() -> None:
    app = well(open_page("pitfalls", pitfall="dividing by zero"))
    assert len(complaints(app)) == 1
    assert complaints(app)[0].startswith("there is no pitfall 'dividing by zero'")
    assert "choose one of cache overflow, position overflow" in complaints(app)[0]
    assert app.selectbox(key="pitfall").value == "cache overflow"
    assert len(complaints(app.run())) == 1
    app.selectbox(key="pitfall").set_value("leaked blocks").run()
    assert complaints(app) == []


def test_another_pitfall_is_chosen() -> None:
    app = open_page("pitfalls", tokens="24")
    app.selectbox(key="pitfall").set_value("softmax residual").run()
    well(app)
    assert any(title("softmax-residual") in element.value for element in app.markdown)
    assert complaints(app) == []
