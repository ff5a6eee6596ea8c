"""python -m tinyllm, as a user calls it."""

import errno
import json
import os
import subprocess
import sys

import pytest

from tinyllm.__main__ import COMMANDS, main
from tinyllm.experiments import decode
from tinyllm.experiments.catalogue import EXPERIMENTS, Experiment
from tinyllm.loading import MODELS, load_weights
from tinyllm.speculative.drafters import available


def test_generate_prints_the_prompt_and_its_continuation(capsys):
    assert main(["generate", "--prompt", "import ", "--max-new-tokens", "20"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("import ")
    assert len(printed.out) == len("import ") + 20 + 1  # and a line's end
    assert printed.err == ""


@pytest.mark.parametrize("drafter", available("target"))
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
    "more",
    [
        ["--k", "auto"],
        ["--k", "3", "--verify", "block"],
        ["--k", "3", "--width", "2"],
        ["--k", "3", "--width", "1", "--verify", "block"],
    ],
)
def test_every_way_of_checking_prints_the_same_greedy_text(capsys, more):
    plain = ["generate", "--prompt", "def __init__(self, ", "--max-new-tokens", "40"]
    main(plain)
    expected = capsys.readouterr().out
    assert main([*plain, *more]) == 0
    printed = capsys.readouterr()
    assert printed.out == expected
    assert printed.err.startswith("40 tokens in ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", ""], "the prompt is empty"),
        (["--prompt", "日本"], "--prompt: the models know printable ASCII and newline only"),
        (["--prompt", "x", "--stop", "é"], "--stop: the models know printable ASCII"),
        (
            ["--prompt", "x", "--model", ""],
            "--model: no model '': choose base, base-draft, draft, target",
        ),
        (["--prompt", "x", "--model", "x" * 5000], "--model: [Errno"),
        (["--prompt", "x", "--top-k", "0"], "--top-k must be a whole number at least 1, not 0"),
        (["--prompt", "x", "--top-k", "1.5"], "--top-k must be a whole number at least 1, not '1"),
        (["--prompt", "x", "--top-p", "0"], "--top-p must be above 0 and at most 1, not 0"),
        (["--prompt", "x", "--top-p", "x"], "--top-p must be above 0 and at most 1, not 'x'"),
        (["--prompt", "x", "--seed", "-1"], "--seed must be a whole number at least 0, not -1"),
        (["--prompt", "x", "--seed", "9" * 5000], "--seed must be a whole number at least 0, not"),
        (["--prompt", "x", "--max-new-tokens", "0"], "--max-new-tokens must be a whole number"),
        (["--prompt", "x", "--drafter", "ngram"], "--drafter needs --k, the proposals per round"),
        (["--prompt", "x", "--verify", "block"], "--verify needs --k, the proposals per round"),
        (["--prompt", "x", "--width", "2"], "--width needs --k, the proposals per round"),
        (["--prompt", "x", "--k", "3", "--width", "9"], "--width must be a whole number from 1 to"),
        (
            ["--prompt", "x", "--k", "auto", "--width", "2"],
            "--width needs a fixed --k, from 1 to 63, not auto",
        ),
        (
            ["--prompt", "x", "--k", "64", "--width", "2"],
            "k, the proposals per round, must be a whole number from 1 to 63",
        ),
        (
            ["--prompt", "x", "--k", "3", "--width", "2", "--verify", "block"],
            "--width needs --verify token: a tree is judged token by token",
        ),
        (
            ["--prompt", "x", "--k", "3", "--width", "2", "--drafter", "ngram"],
            "--width needs a --drafter with more than one candidate for a place (draft, draft-",
        ),
        (
            ["--prompt", "x", "--k", "3", "--width", "2", "--kv-dtype", "int8_channel"],
            "trees need keys without scales by channel, unlike int8_channel",
        ),
        (["--prompt", "x", "--k", "3", "--verify", "all"], "--verify: invalid choice: 'all'"),
        (["--prompt", "x", "--k", "car"], "--k must be a whole number from 1 to 64, or auto, not"),
        (["--prompt", "x", "--drafter", "", "--k", "3"], "--drafter: no model ''"),
        (["--prompt", "x", "--kv-dtype", "int3"], "--kv-dtype: invalid choice: 'int3' (choose"),
        ([], "the following arguments are required: --prompt; see --help"),
        (
            ["--prompt", "x", "--k", "0"],
            "--k must be a whole number from 1 to 64, or auto, not 0",
        ),
        (
            ["--prompt", "x", "--temperature", "nan"],
            "--temperature must be a number from 0 to 100, not nan",
        ),
        (
            ["--prompt", "x", "--model", "gpt-5"],
            "--model: no model 'gpt-5': choose base, base-draft, draft, target",
        ),
        (["--prompt", "x" * 600], "shorten the prompt to at most 511"),
        (["--prompt", "x", "--k", "3", "--drafter", "nobody"], "--drafter: no model 'nobody'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys, arguments, message):
    assert main(["generate", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert message in printed.err


def test_help_is_told_and_is_no_fault(capsys):
    assert main(["generate", "--help"]) == 0
    assert "--max-new-tokens" in capsys.readouterr().out


def run_in_shell(command, **environment):
    """A line of shell in which $TINYLLM is the command; its output, errors and exit code."""
    return subprocess.run(
        ["bash", "-c", command],
        env=os.environ | {"TINYLLM": f"{sys.executable} -m tinyllm"} | environment,
        capture_output=True,
        text=True,
        errors="surrogateescape",
    )


GENERATE = "$TINYLLM generate --prompt x --max-new-tokens 3"


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (f"{GENERATE} > /dev/full", 2, "No space left on device"),
        (f"{GENERATE} >&-", 2, "standard output is closed"),
        (f"{GENERATE} 2>&-", 0, ""),
        (f"{GENERATE} --k 2 2> /dev/full", 2, ""),
        ("$TINYLLM generate --help > /dev/full", 0, ""),
        ("$TINYLLM generate --prompt 2> /dev/full", 2, ""),
    ],
)
def test_a_stream_that_takes_nothing_is_one_line_at_most(command, code, says):
    done = run_in_shell(command)
    assert done.returncode == code
    assert says in done.stderr
    assert done.stderr.count("\n") == (1 if says else 0)


@pytest.mark.parametrize("name", ["train", "generate", "memory", "bench"])
def test_what_the_system_refuses_is_one_line(capsys, monkeypatch, name):
    def refused(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "/somewhere")

    (module,) = (module for command, module, _ in COMMANDS if command == name)
    monkeypatch.setattr(module, "run", refused)
    words = {
        "train": "--out runs/x --steps 1",
        "generate": "--prompt x",
        "memory": "--config Qwen3-8B --context 8",
        "bench": "decode",
    }
    assert main([name, *words[name].split()]) == 2
    said = capsys.readouterr().err
    assert said == f"python -m tinyllm {name}: [Errno 13] Permission denied: '/somewhere'\n"


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


@pytest.mark.parametrize("name", ["exactness", "call-cost", "pitfalls"])
def test_an_experiments_first_row_is_flat(name):
    row = next(EXPERIMENTS[name].rows())
    assert all(value is None or isinstance(value, str | int | float) for value in row.values())
    assert json.loads(json.dumps(row, allow_nan=False)) == row


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
