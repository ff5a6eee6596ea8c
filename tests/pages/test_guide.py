"""The guide as a visitor uses it: tick, read, follow; and what a wrong address meets."""

import pytest

from tests.pages.opening import complaints, open_page, well
from tinyllm.experiments.guide import ENGINES, SYMPTOMS, TECHNIQUES, advice


def shown(app) -> list[str]:
    """Names of the techniques on the page, in order."""
    names = {technique.name for technique in TECHNIQUES}
    lines = (element.value.split("**") for element in app.markdown if "**" in element.value)
    return [parts[1] for parts in lines if parts[0] == "" and parts[1] in names]


def test_a_symptom_is_ticked_and_an_answer_given_at_first_paint() -> None:
    app = well(open_page("guide"))
    assert complaints(app) == []
    assert shown(app) == [technique.name for technique in advice(["slow_tokens"])]
    assert any("Does a KV cache change the output?" in element.value for element in app.markdown)


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_every_symptom(symptom: str) -> None:
    app = open_page("guide", slow_tokens="false")
    app.checkbox(key=symptom).check().run()
    well(app)
    assert complaints(app) == []
    assert shown(app) == [technique.name for technique in advice([symptom])]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_with_every_symptom(engine: str) -> None:
    app = well(open_page("guide", engine=engine, **dict.fromkeys(SYMPTOMS, "true")))
    assert complaints(app) == []
    assert len(shown(app)) == len(TECHNIQUES)
    commands = [technique.flag(engine).command for technique in advice(SYMPTOMS)]
    written = {element.value for element in app.code}
    assert {command for command in commands if command} <= written


def test_nothing_ticked() -> None:
    app = well(open_page("guide", slow_tokens="false"))
    assert shown(app) == []
    assert any("tick what hurts" in element.value for element in app.markdown)


@pytest.mark.parametrize(
    ("parameter", "value"), [("long_context", "maybe"), ("engine", "TensorRT"), ("engine", "vllm")]
)
def test_a_wrong_address_is_corrected_and_said(parameter: str, value: str) -> None:
    app = well(open_page("guide", **{parameter: value}))
    assert len(complaints(app)) == 1
    assert parameter in complaints(app)[0]
    assert value in complaints(app)[0]
    assert app.query_params.get(parameter) != value
    app.checkbox(key="slow_first").check().run()
    assert len(complaints(well(app))) == 1  # said until its own control is moved


def test_a_symptom_given_twice_is_said() -> None:
    app = well(open_page("guide", slow_first=["true", "false"]))
    assert "slow_first is given 2 times: give it once" in complaints(app)[0]
    app.checkbox(key="slow_first").set_value(not app.checkbox(key="slow_first").value).run()
    assert complaints(well(app)) == []
