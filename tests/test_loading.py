import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from tinyllm import load_model
from tinyllm.config import PRESETS, ModelConfig
from tinyllm.errors import ConfigError, WeightsError
from tinyllm.loading import shipped_models
from tinyllm.model import random_weights

CONFIG = ModelConfig(n_layer=1, n_head=2, n_kv_head=1, width=8, context_length=16)


def folder(path, weights, config=CONFIG):
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config.to_json()))
    save_file(weights, path / "model.safetensors")
    return path


def test_the_shipped_models_are_the_presets():
    assert set(PRESETS) <= set(shipped_models())
    for name, config in PRESETS.items():
        assert load_model(name).config == config


def test_a_folder_is_a_model(tmp_path):
    model = load_model(folder(tmp_path / "mine", random_weights(CONFIG)), "float64")
    assert model.name == "mine"
    assert model.forward([1, 2, 3]).dtype == np.float64


def test_weights_may_be_stored_in_half_precision(tmp_path):
    weights = {name: w.astype(np.float16) for name, w in random_weights(CONFIG).items()}
    assert load_model(folder(tmp_path, weights)).forward([1]).dtype == np.float32


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda w: w.pop("ln_f.bias"), "lacks ln_f.bias"),
        (lambda w: w.update({"wte.weight": w["wte.weight"][:5]}), r"wte.weight is \(5, 8\)"),
        (lambda w: w.update({"extra": np.ones(1, np.float32)}), "holds extra"),
        (lambda w: w.update({"ln_f.bias": w["ln_f.bias"] * np.nan}), "ln_f.bias holds a value"),
    ],
)
def test_damaged_weights_are_refused_by_name(tmp_path, damage, message):
    weights = random_weights(CONFIG)
    damage(weights)
    with pytest.raises(WeightsError, match=message):
        load_model(folder(tmp_path, weights))


@pytest.mark.parametrize("content", [b"", b"not weights", b"\xff" * 100])
def test_damaged_files_are_refused(tmp_path, content):
    (folder(tmp_path, random_weights(CONFIG)) / "model.safetensors").write_bytes(content)
    with pytest.raises(WeightsError, match=r"cannot read .*model\.safetensors"):
        load_model(tmp_path)


def test_a_missing_model_is_refused_with_the_choice(tmp_path):
    with pytest.raises(
        WeightsError, match="no model 'targett': choose base, base-draft, draft, target"
    ):
        load_model("targett")
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_model(tmp_path)
    (folder(tmp_path, random_weights(CONFIG)) / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match="cannot read"):
        load_model(tmp_path)
