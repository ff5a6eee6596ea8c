"""The article's figures beside ours, and the documents that show them."""

import json

import pytest

from tinyllm.__main__ import main
from tinyllm.errors import SettingError
from tinyllm.experiments import documents
from tinyllm.experiments.article import Figure, article, beside
from tinyllm.experiments.catalogue import EXPERIMENTS, Experiment
from tinyllm.experiments.report import (
    STORED,
    Measured,
    Report,
    ReportConfig,
    comparison_table,
    measure,
    quantity,
    shown,
)

STEP = Figure(
    "kv-cache", "A step", {"name": "step", "T": 16}, "cached_seconds", 0.00095, "s", "Faster."
)
ROWS = [
    {"name": "equality", "tokens": 96},
    {"name": "step", "T": 8, "cached_seconds": 1.0},
    {
        "name": "step",
        "T": 16,
        "cached_seconds": 0.00019,
        "cached_seconds_low": 0.0001,
        "cached_seconds_high": 0.0003,
    },
]


def test_ours_is_found_by_the_values_of_the_row():
    item = beside(STEP, ROWS)
    assert (item.ours, item.low, item.high) == (0.00019, 0.0001, 0.0003)
    assert item.ratio == pytest.approx(0.2)
    assert shown(item) == ("A step", "0.95 ms", "0.19 ms (0.10 ms - 0.30 ms)", "0.2")
    missing = beside(STEP, ROWS[:2])
    assert missing.ours is missing.ratio is None
    assert shown(missing) == ("A step", "0.95 ms", "-", "-")


def test_zero_and_text_have_no_ratio():
    zero = Figure("a", "b", {}, "x", 0.0, "", None)
    assert beside(zero, [{"x": 0.5}]).ratio is None
    text = Figure("a", "b", {}, "x", "0.982; argmax differs", "", None)
    item = beside(text, [{"x": "2.75; argmax differs"}])
    assert item.ratio is None
    assert shown(item)[1:] == ("0.982; argmax differs", "2.75; argmax differs", "-")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "-"),
        (0.00402, "s", "4.02 ms"),
        (344064, "B", "344,064 B"),
        (15.12, "MFLOP", "15.12 MFLOP"),
        (8, "", "8"),
        (0.8987, "", "0.8987"),
        (2.86e-06, "", "2.86e-06"),
        (True, "", "yes"),
        ("4", "", "4"),
    ],
)
def test_quantities_are_read_easily(value, unit, text):
    assert quantity(value, unit) == text


def test_every_figure_of_the_article_names_an_experiment_of_ours():
    figures = article().figures
    assert len(figures) == 200
    assert {figure.experiment for figure in figures} <= set(EXPERIMENTS)
    assert len({figure.what for figure in figures}) == len(figures)  # each says what it is
    assert not any("{" in figure.what for figure in figures)


@pytest.fixture
def small(monkeypatch):
    """Two experiments in place of all: one with a figure of the article, one with none."""
    for name in list(EXPERIMENTS):
        monkeypatch.delitem(EXPERIMENTS, name)
    for name, rows in (("kv-cache", ROWS), ("mine", [{"a|b": "x < y"}])):
        experiment = Experiment(name, f"what {name} shows", rows.__iter__)
        monkeypatch.setitem(EXPERIMENTS, name, experiment)


def test_a_report_is_stored_and_read_back(small, tmp_path):
    report = Report()
    for event in measure(EXPERIMENTS):
        assert report.take(event)
    assert report.rows["kv-cache"] == ROWS
    (tmp_path / "report.json").write_text(report.to_json(), "utf-8")
    assert Report.load(tmp_path / "report.json") == report
    found = [row for row in comparison_table(report.comparison) if row["ours"] is not None]
    assert [(row["figure"], row["ours"]) for row in found] == [
        ("A step with a cache at T = 16", 0.00019)
    ]


def test_documents_hold_both_figures_the_reason_and_every_row(small):
    report = Report()
    for event in measure(EXPERIMENTS):
        report.take(event)
    text = documents.markdown(report)
    assert "| A step with a cache at T = 16 | 0.95 ms | 0.19 ms (0.10 ms - 0.30 ms) | 0.2 |" in text
    assert "| A step without a cache at T = 16 | 4.02 ms | - | - |" in text
    assert "Our engine spends less" in text
    assert "| a\\|b |" in text
    page = documents.html(report)
    assert "<td>0.95 ms</td><td>0.19 ms (0.10 ms - 0.30 ms)</td>" in page
    assert "x &lt; y" in page
    assert "http" not in page  # needs nothing from anywhere
    for document in (text, page):
        assert article().machine in document
        assert report.machine in document


def test_the_command_writes_three_files(small, tmp_path, capsys):
    out = tmp_path / "new" / "report"
    assert main(["report", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "report.html",
        "report.json",
        "report.md",
    ]
    assert "1 BLAS thread)" in (out / "report.md").read_text("utf-8")
    assert "stopped" not in (out / "report.md").read_text("utf-8")
    assert capsys.readouterr().out.splitlines() == [
        str(out / name) for name in ("report.html", "report.md", "report.json")
    ]


def test_a_stopped_report_keeps_what_it_has(small, tmp_path, monkeypatch):
    def rows():
        yield ROWS[2]
        raise KeyboardInterrupt

    monkeypatch.setitem(EXPERIMENTS, "kv-cache", Experiment("kv-cache", "", rows))
    assert main(["report", "--out", str(tmp_path)]) == 130
    stored = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert stored["rows"] == {"kv-cache": [ROWS[2]]}
    assert "stopped before its end" in (tmp_path / "report.md").read_text("utf-8")


def test_bad_options_are_named(tmp_path, capsys):
    assert main(["report", "--only", "speed"]) == 2
    assert "--only" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["report", "--out", str(tmp_path / "file")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_an_event_says_which_experiment_it_is_of(small):
    first = next(measure(["mine"]))
    assert first == Measured("mine", {"a|b": "x < y"}, first.seconds)


def test_the_stored_run_has_every_figure_and_a_reason_where_it_is_another():
    found = Report.load(STORED).comparison
    assert [item.figure.what for item in found if item.ours is None] == []
    for item in found:
        if item.figure.unit != "s" and item.ratio is not None and abs(item.ratio - 1) > 0.03:
            assert item.figure.why, item.figure.what


@pytest.mark.parametrize(
    "name",
    ["prefill", "prefix", "kv-dtype", "paging", "memory", "exactness", "call-cost", "pitfalls"],
)
def test_the_stored_run_has_the_columns_of_a_run(name):
    """Of a first row; the other experiments take longer to their first."""
    assert list(Report.load(STORED).rows[name][0]) == list(next(EXPERIMENTS[name].rows()))


def test_one_experiment_or_all_that_have_figures():
    assert ReportConfig(experiment="prefix").names == ("prefix",)
    assert set(ReportConfig().names) == {figure.experiment for figure in article().figures}
    with pytest.raises(SettingError, match="experiment must be one of all, kv-cache"):
        ReportConfig(experiment="speed")
