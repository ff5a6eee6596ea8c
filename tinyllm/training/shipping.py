"""What the checkout carries of a finished run: the model's three files and the text to check it on.

A run's folder also holds its checkpoint, history and teacher's table, which stay behind.
"""

import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from tinyllm.config import ModelConfig
from tinyllm.errors import WeightsError
from tinyllm.loading import load_weights
from tinyllm.tokenizer import CharTokenizer
from tinyllm.training.checkpoint import write_text
from tinyllm.training.corpus import Corpus

MODEL_FILES = ("model.safetensors", "config.json", "card.json")


def ship_model(run: Path, folder: Path, half: bool = False) -> None:
    """Copy a finished model out of its run's folder; with half its weights become float16.

    WeightsError names a file that is missing.
    """
    if missing := [name for name in MODEL_FILES if not (run / name).exists()]:
        raise WeightsError(f"{run} lacks {', '.join(missing)}; is the run finished?")
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODEL_FILES:
        shutil.copyfile(run / name, folder / name)
    if half:
        weights = load_weights(folder, ModelConfig.load(folder / "config.json"))
        small = {name: weight.astype(np.float16) for name, weight in weights.items()}
        save_file(small, folder / "model.safetensors", {"format": "np"})


def ship_texts(corpus: Corpus, folder: Path) -> None:
    """validation.txt, on which every card can be checked, and manifest.json of the whole corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "validation.txt", CharTokenizer().decode(corpus.sample().tolist()))
    write_text(folder / "manifest.json", json.dumps(corpus.manifest, indent=2) + "\n")
