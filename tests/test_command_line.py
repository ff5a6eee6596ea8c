"""python -m tinyllm, as a user calls it."""

import json
import subprocess
import sys

import pytest

from tinyllm.__main__ import main
from tinyllm.experiments import decode
from tinyllm.experiments.catalogue import EXPERIMENTS, Experiment
from tinyllm.loading import MODELS, load_weights


def test_generate_prints_the_prompt_and_its_continuation(capsys):
    assert main(["generate", "--prompt", "import ", "--max-new-tokens", "20"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("import ")
    assert len(printed.out) == len("import ") + 20 + 1  # and a line's end
    assert printed.err == ""


@pytest.mark.parametrize("drafter", ["draft", "ngram"])
def test_speculation_prints_the_same_greedy_text_and_its_counters(capsys, drafter):
    plain = ["generate", "--prompt", "def __init__(self, ", "--max-new-tokens", "40"]
    main(plain)
    expected = capsys.readouterr().out
    assert main([*plain, "--k", "4", "--drafter", drafter]) == 0
    printed = capsys.readouterr()
    assert printed.out == expected
    assert printed.err.startswith("40 tokens in ")
    assert "tokens per target call" in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", ""], "the prompt is empty"),
        (["--prompt", "日本"], "printable ASCII and newline only"),
        (
            ["--prompt", "x", "--k", "0"],
            "must be a whole number from 1 to 64, not 0",
        ),
        (["--prompt", "x", "--temperature", "nan"], "temperature must lie in 0..100, not nan"),
        (["--prompt", "x", "--model", "gpt-5"], "no model 'gpt-5': choose draft, target"),
        (["--prompt", "x" * 600], "shorten the prompt to at most 511"),
        (["--prompt", "x", "--k", "3", "--drafter", "nobody"], "no model 'nobody'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys, arguments, message):
    assert main(["generate", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert message in printed.err


def test_unknown_choices_are_refused_by_the_parser(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["generate", "--prompt", "x", "--kv-dtype", "int3"])
    assert stopped.value.code == 2
    assert "choose from" in capsys.readouterr().err


def test_the_module_runs():
    done = subprocess.run(
        [sys.executable, "-m", "tinyllm", "generate", "--prompt", "x = ", "--max-new-tokens", "3"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stdout) == len("x = ") + 3 + 1


def test_a_reader_that_leaves_early_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m tinyllm generate --prompt 'x = ' --max-new-tokens 400 | head -c 5",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "x = " + done.stdout[4]
    assert "Traceback" not in done.stderr


def test_decode_times_every_case_and_judges_every_ratio(target, draft):
    weights = load_weights(MODELS / "target", target.config)
    figures = list(decode.speed(target, draft, weights, turns=3))
    times = {figure.name: figure for figure in figures if figure.unit == "ms"}
    assert set(times) >= {"plain step", "step", "5 rows", "draft step", "plain prefill", "prefill"}
    for figure in figures:
        spread = figure.spread
        assert 0 < spread.low <= spread.median <= spread.high
        assert spread.count == 3
        assert (figure.met is None) == (figure.unit == "ms")


def test_a_bound_is_kept_by_the_median():
    spread = decode.Spread.of([1.0, 2.0, 9.0])
    assert decode.Figure("x", "ratio", spread, at_least=2.0).met is True
    assert decode.Figure("x", "ratio", spread, at_least=2.1).met is False
    assert decode.Figure("x", "ratio", spread, at_most=2.0).met is True
    assert decode.Figure("x", "ratio", spread, at_most=1.9).met is False
    assert decode.Figure("x", "ms", spread).met is None


def test_bench_prints_one_json_object(capsys, monkeypatch):
    row = {"name": "a", "unit": "ms", "median": 1.0, "low": 0.5, "high": 2.0, "met": False}
    row |= {"at_least": None, "at_most": 0.9, "turns": 3}
    monkeypatch.setitem(EXPERIMENTS, "decode", Experiment("decode", "", lambda: iter([row])))
    assert main(["bench", "decode", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {"name", "machine", "rows"}
    assert printed["name"] == "decode"
    assert printed["machine"]["blas_threads"] == 1
    assert printed["rows"] == [row]
    assert main(["bench", "decode"]) == 0
    heading, line = capsys.readouterr().out.splitlines()[1:]
    assert heading.split() == ["name", "unit", "median", "met", "at_least", "at_most", "turns"]
    assert line.split() == ["a", "ms", "1", "[0.5", "-", "2]", "no", "-", "0.9", "3"]


def test_a_stopped_bench_tells_what_it_has(capsys, monkeypatch):
    def rows():
        yield {"a": 1}
        raise KeyboardInterrupt

    monkeypatch.setitem(EXPERIMENTS, "decode", Experiment("decode", "", rows))
    assert main(["bench", "decode", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["rows"] == [{"a": 1}]
    assert main(["bench", "decode"]) == 130
    assert capsys.readouterr().out.splitlines()[1:] == ["a", "1"]
