"""The chunk size is measured once a machine, remembered, and never a reason to fail."""

import json
from pathlib import Path

import pytest

from tinyllm import calibration
from tinyllm.layers import L2_BYTES
from tinyllm.machine import this_machine


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calibration.calibrated.cache_clear()
    return tmp_path / "tinyllm"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry a measurement, which finds 64 columns best."""
    calls: list[int] = []

    def measure() -> dict[int, float]:
        calls.append(1)
        return {width: 1.0 + abs(width - 64) for width in calibration.CANDIDATES}

    monkeypatch.setattr(calibration, "measure", measure)
    return calls


def test_every_candidate_is_measured() -> None:
    seconds = calibration.measure(turns=1)
    assert set(seconds) == set(calibration.CANDIDATES)
    assert min(seconds.values()) > 0


def test_small_models_have_no_chunks_and_ask_for_no_measurement(measured: list[int]) -> None:
    assert calibration.chunk_columns(L2_BYTES) == 0
    assert not measured


def test_the_best_is_remembered_between_processes(cache_folder: Path, measured: list[int]) -> None:
    for _process in range(3):
        calibration.calibrated.cache_clear()
        assert calibration.chunk_columns(L2_BYTES + 1) == 64
    assert len(measured) == 1
    known = json.loads((cache_folder / "chunks.json").read_text("utf-8"))
    assert known == {str(this_machine()): 64}


def test_chunks_must_save_more_than_measuring_varies() -> None:
    assert calibration.worth_it({0: 1.0, 64: 0.97, 128: 0.98}) == 0
    assert calibration.worth_it({0: 1.0, 64: 0.5, 128: 0.4}) == 128


def test_another_machines_line_is_kept(cache_folder: Path, measured: list[int]) -> None:
    cache_folder.mkdir()
    (cache_folder / "chunks.json").write_text('{"another": 131072}', "utf-8")
    assert calibration.calibrated() == 64
    assert measured
    known = json.loads((cache_folder / "chunks.json").read_text("utf-8"))
    assert known["another"] == 131072


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"%s": 7}', '{"%s": "64"}', "\xff"])
def test_a_file_that_is_not_ours_is_measured_over(
    text: str, cache_folder: Path, measured: list[int]
) -> None:
    cache_folder.mkdir()
    (cache_folder / "chunks.json").write_text(text.replace("%s", str(this_machine())), "latin-1")
    assert calibration.calibrated() == 64
    assert measured


def test_a_folder_that_cannot_be_written_does_no_harm(
    cache_folder: Path, measured: list[int]
) -> None:
    cache_folder.write_text("a file, not a folder", "utf-8")
    assert calibration.calibrated() == 64
    assert measured
