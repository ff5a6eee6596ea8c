"""Models of every family, loaded from both formats, and everything that can be wrong with them."""

import json
from contextlib import suppress

import ml_dtypes
import numpy as np
import pytest

from tests.families import CONFIGS, TOKENS, family_weights
from tests.model_files import END, write_folder, write_gguf
from tinyllm.config import ModelConfig
from tinyllm.errors import (
    ConfigError,
    MissingPackageError,
    TinyllmError,
    TokenizerError,
    WeightsError,
)
from tinyllm.folding import folded_bytes, folding
from tinyllm.loading import Loaded, Progress, available_models, find_model, load_model, loading
from tinyllm.loading import load as load_module
from tinyllm.model import Transformer


def in_memory(name: str) -> Transformer:
    return Transformer(ModelConfig.from_json(CONFIGS[name]), family_weights(name))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_folder_gives_the_same_logits(name, tmp_path):
    expected = in_memory(name).forward(TOKENS)
    for path in (
        write_folder(tmp_path / "one", name),
        write_folder(tmp_path / "three", name, shards=3),
        write_gguf(tmp_path / "model.gguf", name),
    ):
        assert np.array_equal(load_model(path).forward(TOKENS), expected)


@pytest.mark.parametrize(
    ("dtype", "bound"), [(np.float16, 0.02), (ml_dtypes.bfloat16, 0.2), (np.float64, 1e-5)]
)
def test_other_float_types_are_read(dtype, bound, tmp_path):
    model = load_model(write_folder(tmp_path, "llama", dtype))
    assert model.forward(TOKENS).dtype == np.float32
    assert 0 <= np.abs(model.forward(TOKENS) - in_memory("llama").forward(TOKENS)).max() < bound


@pytest.mark.parametrize(("kind", "bound"), [("F16", 0.02), ("BF16", 0.2), ("F32", 1e-6)])
def test_other_gguf_types_are_read(kind, bound, tmp_path):
    model = load_model(write_gguf(tmp_path / "m.gguf", "qwen3", kind))
    assert np.abs(model.forward(TOKENS) - in_memory("qwen3").forward(TOKENS)).max() < bound


@pytest.mark.parametrize("path", ["folder", "model.gguf"])
def test_a_tokenizer_comes_with_the_model(path, tmp_path):
    write = write_gguf if path.endswith("gguf") else write_folder
    tokenizer = load_model(write(tmp_path / path, "llama")).tokenizer
    assert tokenizer.decode(tokenizer.encode("within<|end|>")) == "within<|end|>"
    assert tokenizer.encode("in<|end|>") == [94, END]
    assert tokenizer.stop_tokens == {END}
    assert tokenizer.chat([{"role": "user", "content": "Hi"}]) == "user: Hi\n"


def test_loading_tells_its_progress_and_its_bytes(tmp_path):
    *events, last = loading(write_folder(tmp_path, "llama"))
    assert isinstance(last, Loaded)
    assert [(event.layers, event.of) for event in events] == [(0, 2), (1, 2), (2, 2)]
    assert all(isinstance(event, Progress) for event in events)


@pytest.mark.parametrize("chunk_columns", [0, 16])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_bytes_told_are_those_taken(name, chunk_columns):
    config, dtype = ModelConfig.from_json(CONFIGS[name]), np.dtype("float32")
    *blocks, whole = folding(family_weights(name), config, dtype, chunk_columns)
    weights = [whole.head]
    for block in blocks:
        weights += [block.qkv, block.attention_out, block.up, block.down]
    taken = whole.token_embedding.nbytes
    taken += whole.position_embedding.nbytes if name == "gpt2" else 0
    for weight in weights:
        taken += weight.whole.nbytes
        if weight.chunks is not None and not np.shares_memory(weight.chunks, weight.whole):
            taken += weight.chunks.nbytes
    told = folded_bytes(config, dtype, chunk_columns)
    assert taken <= told  # a matrix of one chunk's size has no second copy
    assert told <= 1.25 * taken


def test_a_model_that_does_not_fit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "large", "llama")
    (folder / "model.safetensors").write_bytes(b"")
    monkeypatch.setattr(load_module, "available_memory", lambda: 1000)
    with pytest.raises(WeightsError, match=r"large takes .* of memory and 1000 B are free"):
        load_model(write_folder(tmp_path / "large", "llama"))


def test_a_missing_package_is_named_with_what_to_run(tmp_path, monkeypatch):
    monkeypatch.setattr(load_module, "find_spec", lambda name: None if name == "gguf" else 1)
    with pytest.raises(MissingPackageError, match="language models need gguf: run make llm"):
        load_model(write_gguf(tmp_path / "m.gguf", "llama"))


def test_a_folder_of_the_hosts_is_chosen_from_by_name(tmp_path, monkeypatch):
    write_folder(tmp_path / "my-llama", "llama")
    write_gguf(tmp_path / "my-qwen.gguf", "qwen2")
    monkeypatch.setenv("TINYLLM_MODELS", str(tmp_path))
    assert {"my-llama", "my-qwen", "target", "SmolLM2-135M-Instruct"} <= set(available_models())
    assert find_model("my-llama") == tmp_path / "my-llama"
    assert load_model("my-qwen").name == "my-qwen"
    monkeypatch.delenv("TINYLLM_MODELS")
    with pytest.raises(WeightsError, match="no model 'my-llama': choose"):
        find_model("my-llama")


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ({"general__architecture": "mamba"}, ConfigError, "general.architecture must be one of"),
        (
            {"llama__rope__scaling__type": "yarn"},
            ConfigError,
            "scaling.type must be 'none', not 'y",
        ),
        ({"model": "bert"}, TokenizerError, "tokenizer is 'bert'"),
        ({"pre": "tekken"}, TokenizerError, "pre 'tekken' is unknown; known are gpt-2"),
    ],
)
def test_what_is_not_supported_in_gguf_is_named(metadata, error, message, tmp_path):
    path = tmp_path / "m.gguf"
    if "general__architecture" in metadata:
        content = write_gguf(path, "llama").read_bytes()
        path.write_bytes(content.replace(b"llama", b"mamba"))
    else:
        write_gguf(path, "llama", **metadata)
    with pytest.raises(error, match=message):
        load_model(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "mamba", "model_type must be gpt2, llama, mistral, qwen2 or qwen3"),
        ("hidden_act", "gelu", "hidden_act must be 'silu', not 'gelu'"),
        ("rope_scaling", {"type": "linear"}, "rope_scaling must be None"),
        ("hidden_size", None, "width must be a whole number"),
        ("num_hidden_layers", 3, "lacks model.layers.2.input_layernorm.weight"),
        ("intermediate_size", 81, r"gate_proj.weight is \(80, 48\), config.json says \(81, 48\)"),
        ("vocab_size", 96, r"embed_tokens.weight is \(97, 48\)"),
        ("attention_bias", "yes", "attention_bias must be true or false"),
    ],
)
def test_a_config_that_does_not_fit_is_named(key, value, message, tmp_path):
    folder = write_folder(tmp_path, "llama")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {key: value}))
    with pytest.raises((ConfigError, WeightsError), match=message):
        load_model(folder)


def test_a_folder_without_a_tokenizer_is_named(tmp_path):
    folder = write_folder(tmp_path, "llama")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"has no tokenizer.json, so vocab_size must be 96"):
        load_model(folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerError, match=r"cannot read .*tokenizer.json"):
        load_model(folder)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("kind", ["folder", "shards", "gguf"])
def test_a_cut_off_file_is_named(kind, share, tmp_path):
    if kind == "gguf":
        path = target = write_gguf(tmp_path / "m.gguf", "llama")
    else:
        path = write_folder(tmp_path, "llama", shards=2 if kind == "shards" else 1)
        target = next(path.glob("*.safetensors"))
    target.write_bytes(target.read_bytes()[: int(share * target.stat().st_size)])
    with pytest.raises(WeightsError, match=target.name):
        load_model(path)


@pytest.mark.parametrize("seed", range(30))
def test_damaged_headers_give_errors_of_ours(seed, tmp_path):
    rng = np.random.default_rng(seed)
    for path in (write_gguf(tmp_path / "m.gguf", "llama"), write_folder(tmp_path / "f", "llama")):
        file = path if path.is_file() else path / "model.safetensors"
        content = bytearray(file.read_bytes())
        for place in rng.integers(0, 3000, 8):
            content[place] = rng.integers(256)
        file.write_bytes(content)
        with suppress(TinyllmError):  # some bytes change nothing that can be told
            load_model(path)
