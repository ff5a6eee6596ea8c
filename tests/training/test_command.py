"""The command from its arguments to a finished folder, and one line for whatever is wrong."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tinyllm.__main__ import main
from tinyllm.config import PRESETS, ModelConfig
from tinyllm.loading import load_model
from tinyllm.speculative import speculate
from tinyllm.speculative.drafters import load_heads
from tinyllm.training import command as command_module
from tinyllm.training import run as run_module
from tinyllm.training.checkpoint import CHECKPOINT, load_parameters, save_model
from tinyllm.training.job import fresh_generator
from tinyllm.training.parameters import initialise

ROOT = Path(__file__).parents[2]
SENTENCE = "the draft proposes, the target disposes; "


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(SENTENCE * 600, "utf-8")
    return path


@pytest.fixture
def train(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs `train --preset draft --text ... --out ...` with further words; the exit code."""
    monkeypatch.setattr(run_module, "WINDOWS_SEEN", 2)

    def call(words: str) -> int:
        start = f"train --preset draft --text {text} --out {tmp_path / 'out'} "
        return main(shlex.split(start + words))

    return call


def test_trains_and_writes_a_model_and_its_card(train, tmp_path: Path, capsys) -> None:
    assert train("--steps 2") == 0
    folder = tmp_path / "out"
    assert load_parameters(folder).config == PRESETS["draft"]
    card = json.loads((folder / "card.json").read_text("utf-8"))
    assert card["training"]["steps"] == 2
    assert card["training"]["characters_seen"] == 4096
    assert set(card["validation"]["by_position"]) == {"0-15", "16-63", "64-255", "256-511"}
    assert card["corpus"]["source"] == "text file text.txt"
    assert "nats a character" in capsys.readouterr().out
    history = (folder / "history.jsonl").read_text("utf-8").splitlines()
    assert json.loads(history[-1])["step"] == 2


@pytest.mark.parametrize(
    "options",
    [
        "--seed 3 --lr 0.002 --decay 0.2 --batch 1024",
        "--optimiser muon --beta1 0.95 --batch 4096 --micro-batch 2048",
    ],
)
def test_cards_command_makes_the_same_weights(train, options: str, tmp_path: Path) -> None:
    assert train(f"--steps 2 {options}") == 0
    folder = tmp_path / "out"
    weights = (folder / "model.safetensors").read_bytes()
    command = json.loads((folder / "card.json").read_text("utf-8"))["command"]
    words = shlex.split(command)
    assert words[:4] == ["python", "-m", "tinyllm", "train"]
    words[-1] = str(tmp_path / "again")
    assert main(words[3:]) == 0
    assert (tmp_path / "again/model.safetensors").read_bytes() == weights


def test_minutes_become_steps(train, tmp_path: Path, capsys) -> None:
    assert train("--minutes 0.01") == 0
    said = capsys.readouterr().out
    steps = json.loads((tmp_path / "out/run.json").read_text("utf-8"))["plan"]["steps"]
    assert f"{steps} steps in 0.01 minutes" in said


def test_distils_from_a_folder(train, tmp_path: Path) -> None:
    save_model(tmp_path / "teacher", initialise(ModelConfig(n_layer=1), fresh_generator(1)))
    assert train(f"--steps 2 --distil-from {tmp_path / 'teacher'}") == 0
    card = json.loads((tmp_path / "out/card.json").read_text("utf-8"))
    assert 0.0 < card["agreement_with_teacher"]["acceptance"] <= 1.0
    assert f"--distil-from {tmp_path / 'teacher'}" in card["command"]


def test_a_teacher_reads_no_more_than_it_is_asked_to(train, tmp_path: Path) -> None:
    save_model(tmp_path / "teacher", initialise(ModelConfig(n_layer=1), fresh_generator(1)))
    assert train(f"--steps 2 --distil-from {tmp_path / 'teacher'} --distil-on 4096") == 0
    (table,) = (tmp_path / "out").glob("teacher-*.npy")
    assert np.load(table, mmap_mode="r").shape == (8, 512, 96)


def test_a_card_tells_every_training_that_led_to_it(train, tmp_path: Path) -> None:
    """A second run, from the first one's weights and with a model without a card as its teacher."""
    save_model(tmp_path / "teacher", initialise(PRESETS["draft"], fresh_generator(1)))
    (tmp_path / "teacher" / "card.json").write_text('["of another kind"]', "utf-8")
    assert train("--steps 1") == 0
    first = f"--init-from {tmp_path / 'out'} --distil-from {tmp_path / 'teacher'}"
    assert train(f"--steps 2 {first} --out {tmp_path / 'second'}") == 0
    assert train(f"--steps 3 --init-from {tmp_path / 'second'} --out {tmp_path / 'third'}") == 0
    told = json.loads((tmp_path / "third/card.json").read_text("utf-8"))["trainings"]
    assert [command.split("--steps ")[1][0] for command in told] == ["1", "2", "3"]


def test_begins_with_other_weights(train, tmp_path: Path, capsys) -> None:
    save_model(tmp_path / "first", initialise(PRESETS["draft"], fresh_generator(1)))
    assert train(f"--steps 1 --lr 1e-9 --init-from {tmp_path / 'first'}") == 0
    first, now = (load_parameters(tmp_path / name).vector for name in ("first", "out"))
    assert abs(first - now).max() < 1e-6
    (command,) = json.loads((tmp_path / "out/card.json").read_text("utf-8"))["trainings"]
    assert command.startswith("python -m tinyllm train --preset draft --steps 1 ")
    words = f"train --steps 1 --out {tmp_path / 'other'} --init-from {tmp_path / 'first'}"
    assert main(shlex.split(words)) == 2
    assert "n_layer 1, but the preset asks for 4" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("", "give --minutes or --steps"),
        ("--steps 0", "--steps must be a whole number from 1 to 1000000000, not 0"),
        ("--steps few", "--steps must be a whole number from 1 to 1000000000, not 'few'"),
        ("--minutes -1", "--minutes must be above 0 and at most 100000, not -1"),
        ("--minutes nan", "--minutes must be above 0 and at most 100000, not nan"),
        ("--minutes inf", "--minutes must be above 0 and at most 100000, not inf"),
        (
            "--steps 1 --batch 512",
            "--batch must be a multiple of 1024 from 1024 to 1048576",
        ),
        ("--steps 1 --batch 1500", "--batch must be a multiple of 1024 from 1024"),
        ("--steps 1 --batch 0", "--batch must be a multiple of 1024 from 1024"),
        ("--steps 1 --micro-batch 1500", "--micro-batch must be a multiple of 1024 from 1024"),
        ("--steps 1 --micro-batch 4096", "tokens per step (2048) must be a multiple of"),
        ("--steps 1 --optimiser sgd", "--optimiser: invalid choice: 'sgd' (choose from"),
        ("--steps 1 --beta1 1", "--beta1 must be a number from 0 to 0.999, not 1"),
        ("--steps 1 --distil-on 100", "--distil-on must be a whole number at least 4096, not"),
        ("--steps 1 --lr 0", "--lr must be above 0 and at most 0.1, not 0"),
        ("--steps 1 --lr 1e9", "--lr must be above 0 and at most 0.1, not 1e9"),
        ("--steps 1 --decay -1", "--decay must be a number from 0 to 1, not -1"),
        ("--steps 1 --seed -1", "--seed must be a whole number at least 0, not -1"),
        ("--resume", "cannot read a checkpoint"),
        ("--steps 1 --init-from nowhere", "--init-from: no model 'nowhere': choose"),
        ("--steps 1 --init-from ''", "--init-from: no model '': choose"),
        ("--steps 1 --distil-from nowhere", "--distil-from: no model 'nowhere': choose"),
        ("--steps 1 --distil-from ''", "--distil-from: no model '': choose"),
        (
            "--steps 1 --divergence-until 2",
            "--divergence-until must be a number from 0 to 1, not",
        ),
        ("--steps 1 --text absent.txt", "--text: cannot read absent.txt"),
        ("--steps 1 --text ''", "--text must be a path, not ''"),
        ("--steps 1 --text .", "--text: cannot read . as UTF-8 text: "),
        ("--steps 1 --out ''", "--out must be a path, not ''"),
        (f"--steps 1 --out {'x' * 5000}", "File name too long"),
        (f"--steps 1 --init-from {'x' * 5000}", "--init-from: [Errno"),
        ("--steps 1 --preset huge", "--preset: invalid choice: 'huge' (choose from"),
    ],
)
def test_what_is_wrong_takes_one_line(
    train, words: str, named: str, capsys, tmp_path: Path
) -> None:
    assert train(words) == 2
    said = capsys.readouterr().err
    assert named in said
    assert said.startswith("python -m tinyllm train: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_in_use_is_refused(train, tmp_path: Path, capsys) -> None:
    assert train("--steps 1") == 0
    weights = (tmp_path / "out" / CHECKPOINT).read_bytes()
    assert train("--steps 1") == 2
    assert "already holds a run; add --resume" in capsys.readouterr().err
    assert train("--steps 2 --resume") == 2
    assert "plan.steps is 1 there and 2 here" in capsys.readouterr().err
    assert (tmp_path / "out" / CHECKPOINT).read_bytes() == weights
    assert train("--resume") == 0  # finished already: only the card is made again


def test_out_that_is_a_file_is_named(train, tmp_path: Path, capsys) -> None:
    (tmp_path / "out").write_text("a file")
    assert train("--steps 1") == 2
    assert "out is not a folder" in capsys.readouterr().err


def test_out_that_cannot_be_made_is_named(text: Path, tmp_path: Path, capsys) -> None:
    words = f"train --preset draft --steps 1 --text {text} --out {text / 'inside'}"
    assert main(shlex.split(words)) == 2
    assert "cannot make the folder" in capsys.readouterr().err


def test_interrupt_while_measuring_leaves_nothing(
    train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def interrupted(job: object, folder: Path) -> float:
        assert folder.is_dir()
        raise KeyboardInterrupt

    monkeypatch.setattr(command_module, "seconds_per_step", interrupted)
    before = sorted(tmp_path.iterdir())
    assert train(f"--minutes 1 --out {tmp_path / 'a' / 'b' / 'c'}") == 130
    assert capsys.readouterr().err == "stopped\n"
    assert sorted(tmp_path.iterdir()) == before
    (tmp_path / "mine").mkdir()  # a folder that was there before stays
    assert train(f"--minutes 1 --out {tmp_path / 'mine'}") == 130
    assert (tmp_path / "mine").is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes there")
def test_names_that_are_not_utf_8_are_as_good_as_others(text: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    text.rename(text.with_name(name))
    words = ["-m", "tinyllm", "train", "--preset", "draft", "--steps", "1"]
    words += ["--text", str(text.with_name(name)), "--out", str(tmp_path / f"{name}-out")]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert os.fsencode(tmp_path / f"{name}-out") in done.stdout
    card = json.loads((tmp_path / f"{name}-out" / "card.json").read_text("utf-8"))
    assert card["corpus"]["source"] == f"text file {name}"
    assert load_model(tmp_path / f"{name}-out").config == PRESETS["draft"]


@pytest.mark.skipif(sys.platform != "linux", reason="file sizes are limited as only Unix can")
def test_a_full_disk_takes_one_line_and_leaves_no_half_file(text: Path, tmp_path: Path) -> None:
    """Files of at most 100 KiB stand for a disk that fills up while the weights are written."""
    folder = tmp_path / "out"
    train = f"{sys.executable} -m tinyllm train --preset draft --steps 1"
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 100; {train} --text {text} --out {folder}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"python -m tinyllm train: cannot write {folder / CHECKPOINT}" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in folder.iterdir()] == ["run.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="a signal is sent to another process")
def test_interrupt_saves_and_says_how_to_resume(text: Path, tmp_path: Path) -> None:
    words = ["-m", "tinyllm", "train", "--preset", "draft", "--text", str(text), "--steps", "3000"]
    folder = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, *words, "--out", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 60
    while not (folder / "run.json").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    said, shown = process.communicate(timeout=60)
    assert process.returncode == 130, shown
    assert "Traceback" not in shown
    assert "Stopped after step" in said
    assert "--steps 3000" in said.splitlines()[-1]
    assert said.rstrip().endswith("--resume")
    assert (folder / CHECKPOINT).exists()


def test_heads_are_trained_saved_and_draft_for_their_target(train, tmp_path: Path, capsys) -> None:
    assert train("--medusa-of target --steps 2 --lr 0.002") == 0
    folder = tmp_path / "out"
    card = json.loads((folder / "card.json").read_text("utf-8"))
    assert card["target"] == "target"
    assert card["command"] == card["trainings"][-1]
    assert "--medusa-of target" in card["command"]
    assert "--preset" not in card["command"]
    assert all(0 < kept < 1 for kept in card["acceptance"]["by_head"])
    drafter = load_heads(folder)
    assert len(drafter.heads) == len(card["acceptance"]["by_head"])
    assert sum(head.nbytes for head in drafter.heads) == 4 * card["parameters"]
    events = list(speculate(load_model("target"), drafter, SENTENCE, max_new_tokens=12))
    assert sum(len(event.proposed) for event in events) > 0
    capsys.readouterr()
    assert train("--medusa-of target --steps 2") == 2
    assert "holds heads already" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--resume", "--init-from target", "--optimiser muon"])
def test_what_heads_do_not_know_is_refused(train, words: str, capsys) -> None:
    assert train(f"--medusa-of target --steps 2 {words}") == 2
    assert "--medusa-of trains new heads" in capsys.readouterr().err
