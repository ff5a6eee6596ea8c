import json

import pytest

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("target", 513_600),
        ("target-kv2", 476_736),
        ("target-kv1", 458_304),
        ("draft", 61_968),
        ("base", 4_519_936),
        ("base-draft", 453_120),
    ],
)
def test_presets_have_the_published_sizes(name, parameters):
    assert PRESETS[name].n_parameters == parameters


def test_json_round_trip(tmp_path):
    config = ModelConfig(n_layer=2, width=48, n_head=4, n_kv_head=2)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_json()))
    assert ModelConfig.load(path) == config


def test_a_gpt2_config_without_kv_heads_is_multi_head():
    data = ModelConfig().to_json()
    del data["n_kv_head"]
    assert ModelConfig.from_json(data).n_kv_head == 4


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_kv_head": 3}, "n_kv_head .3. must divide n_head .4."),
        ({"width": 98}, "multiple of n_head"),
        ({"n_layer": 0}, "n_layer must be a whole number of at least 1, not 0"),
        ({"width": -96}, "width must be"),
        ({"vocab_size": True}, "vocab_size must be"),
        ({"context_length": 1.5}, "context_length must be"),
        ({"n_head": "4"}, "n_head must be"),
        ({"n_head": None}, "n_head must be"),
    ],
)
def test_impossible_shapes_are_refused_by_name(fields, message):
    with pytest.raises(ConfigError, match=message):
        ModelConfig(**fields)


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", '{"n_embd": 96}'])
def test_a_damaged_file_is_refused(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"config\.json"):
        ModelConfig.load(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "bert"),
        ("activation_function", "relu"),
        ("tie_word_embeddings", "yes"),
        ("vocab_size", "96"),
        ("scale_attn_by_inverse_layer_idx", True),
    ],
)
def test_another_architecture_is_refused(key, value):
    with pytest.raises(ConfigError, match=f"{key} must be .*, not {value!r}"):
        ModelConfig.from_json(ModelConfig().to_json() | {key: value})
