"""The KV-heads page: a result at once, both ways of training, and what a wrong address meets."""

import pytest

from tests.pages.opening import complaints, open_page, well


def test_a_result_at_first_paint() -> None:
    app = well(open_page("kv_heads"))
    assert complaints(app) == []
    assert [metric.label for metric in app.metric] == [
        "Time, 1 head against 8",
        "It reads",
        "Loss with 1 head, at best",
    ]
    assert app.metric[1].value == "4.00 MiB"
    assert app.metric[1].delta == "instead of 32.0 MiB"


def test_another_context_reads_other_bytes() -> None:
    app = open_page("kv_heads")
    app.button(key="_idea_0").click().run()
    assert complaints(well(app)) == []
    assert app.segmented_control(key="context").value == 1024
    assert app.metric[1].value == "1.00 MiB"


def test_run_and_stop() -> None:
    app = open_page("kv_heads")
    app.button(key="_run").click().run()
    assert not app.button(key="_stop").disabled
    app.button(key="_stop").click().run()
    well(app)
    assert app.button(key="_stop").disabled


@pytest.mark.parametrize("value", ["4097", "-1", "much", "nan"])
def test_a_wrong_context_is_corrected_and_said(value: str) -> None:
    app = well(open_page("kv_heads", context=value))
    assert len(complaints(app)) == 1
    assert "context" in complaints(app)[0]
    assert app.query_params.get("context") != value
