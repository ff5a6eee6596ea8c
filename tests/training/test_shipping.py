"""The shipped files are the run's files, and the shipped text is the corpus's sample."""

import json
from pathlib import Path

import numpy as np
import pytest

from tinyllm.config import ModelConfig
from tinyllm.errors import WeightsError
from tinyllm.tokenizer import CharTokenizer
from tinyllm.training.checkpoint import load_parameters, save_model
from tinyllm.training.corpus import text_corpus
from tinyllm.training.job import fresh_generator
from tinyllm.training.parameters import initialise
from tinyllm.training.shipping import MODEL_FILES, ship_model, ship_texts


def test_a_finished_model_is_copied(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(WeightsError, match=r"lacks model\.safetensors, config\.json, card\.json"):
        ship_model(run, tmp_path / "model")
    for name in (*MODEL_FILES, "checkpoint.safetensors"):
        (run / name).write_text(name, "utf-8")
    ship_model(run, tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == sorted(MODEL_FILES)


def test_a_large_model_ships_in_half_precision(tmp_path: Path, tiny_config: ModelConfig) -> None:
    run, folder = tmp_path / "run", tmp_path / "model"
    parameters = initialise(tiny_config, fresh_generator(0))
    save_model(run, parameters)
    (run / "card.json").write_text("{}", "utf-8")
    ship_model(run, folder, half=True)
    sizes = [(path / "model.safetensors").stat().st_size for path in (run, folder)]
    assert sizes[1] < 0.55 * sizes[0]
    shipped = load_parameters(folder)
    np.testing.assert_array_equal(shipped.vector, parameters.vector.astype(np.float16))


def test_texts(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("once upon a time\n" * 2000, "utf-8")
    corpus = text_corpus(tmp_path / "story.txt")
    ship_texts(corpus, tmp_path / "texts")
    text = (tmp_path / "texts/validation.txt").read_text("utf-8")
    assert text == CharTokenizer().decode(corpus.sample().tolist())
    manifest = json.loads((tmp_path / "texts/manifest.json").read_text("utf-8"))
    assert manifest == corpus.manifest
