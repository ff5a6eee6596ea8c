"""Checkpoints that resume to the same weights bit for bit, and the finished model's files.

A checkpoint is one safetensors file: weights, both moments, and in its metadata the step, the
generator's state and the identity of the run. Files are written beside their place and renamed,
so that an interruption leaves the previous one whole. No pickle.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from tinyllm.config import ModelConfig
from tinyllm.errors import CheckpointError
from tinyllm.loading import load_weights
from tinyllm.training.parameters import Array, Parameters
from tinyllm.training.trainer import Trainer

CHECKPOINT = "checkpoint.safetensors"


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with _beside(path) as beside:
        beside.write_text(text, "utf-8")


def write_arrays(path: Path, arrays: Mapping[str, Array], metadata: dict[str, str]) -> None:
    """Write a safetensors file whole or not at all. CheckpointError when it cannot be."""
    try:
        with _beside(path) as beside:
            save_file(dict(arrays), beside, metadata)
    except SafetensorError as error:  # a full disk, say
        raise CheckpointError(f"cannot write {path}: {error}") from error


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A place to write in, which then becomes `path`; on failure nothing is left there."""
    beside = path.with_name(path.name + ".partial")
    try:
        yield beside
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> None:
    """Create a folder for a run. CheckpointError when that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"cannot make the folder {folder}: {error}") from error


def save_model(folder: Path, parameters: Parameters) -> None:
    """model.safetensors and config.json, which any part of tinyllm can load."""
    folder.mkdir(parents=True, exist_ok=True)
    write_arrays(folder / "model.safetensors", parameters.views, {"format": "np"})
    write_text(folder / "config.json", json.dumps(parameters.config.to_json(), indent=2) + "\n")


def load_parameters(folder: Path) -> Parameters:
    """A finished model's weights. WeightsError names a missing or damaged file."""
    config = ModelConfig.load(folder / "config.json")
    parameters = Parameters(config)
    parameters.assign(load_weights(folder, config))
    return parameters


def save_checkpoint(
    folder: Path, trainer: Trainer, identity: dict[str, Any], seconds: float
) -> None:
    """Everything the next step depends on, and the seconds spent so far."""
    state = {
        "step": trainer.step,
        "seconds": seconds,
        "generator": trainer.generator.bit_generator.state,
        "identity": identity,
    }
    arrays = {
        "weights": trainer.parameters.vector,
        "first_moment": trainer.optimiser.first,
        "second_moment": trainer.optimiser.second,
    }
    write_arrays(folder / CHECKPOINT, arrays, {"state": json.dumps(state)})


def read_state(folder: Path) -> dict[str, Any]:
    """Step, seconds, generator and identity of a checkpoint. CheckpointError when there is none."""
    path = folder / CHECKPOINT
    try:
        with safe_open(path, framework="np") as file:
            state: dict[str, Any] = json.loads(file.metadata()["state"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"cannot read a checkpoint at {path}: {error}") from error
    return state


def restore(folder: Path, trainer: Trainer, identity: dict[str, Any]) -> float:
    """Put a checkpoint into a trainer; returns the seconds spent before it.

    CheckpointError names every setting in which the checkpoint's run and this one differ.
    """
    state = read_state(folder)
    if differences := _differences(state["identity"], json.loads(json.dumps(identity))):
        raise CheckpointError(
            f"{folder / CHECKPOINT} is of another run; resume with the same settings, or give "
            f"another --out. Differs: {'; '.join(differences)}"
        )
    arrays = load_file(folder / CHECKPOINT)
    trainer.parameters.vector[...] = arrays["weights"]
    trainer.optimiser.first[...] = arrays["first_moment"]
    trainer.optimiser.second[...] = arrays["second_moment"]
    trainer.generator.bit_generator.state = state["generator"]
    trainer.step = int(state["step"])
    return float(state["seconds"])


def _differences(stored: Any, wanted: Any, where: str = "") -> list[str]:
    """Every leaf that differs, as 'name: stored there, wanted here'."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        found: list[str] = []
        for key in [*stored, *(key for key in wanted if key not in stored)]:
            inner = f"{where}.{key}" if where else key
            found += _differences(stored.get(key), wanted.get(key), inner)
        return found
    return [] if stored == wanted else [f"{where} is {stored!r} there and {wanted!r} here"]
