"""GGUF headers: the same cache as from the model's config.json, and damaged files."""

import json
import struct

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.__main__ import main
from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan
from tinyllm.memory.engines import llamacpp
from tinyllm.memory.gguf_header import read_header
from tinyllm.memory.gguf_plan import plan_gguf
from tinyllm.memory.presets import preset


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def packed(value) -> bytes:
    """One value with its type: bool, 32-bit number, string, or list of one of these."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    items = [packed(item) for item in value]
    kind = items[0][:4] if items else struct.pack("<I", 4)
    body = b"".join(item[4:] for item in items)
    return struct.pack("<I", 9) + kind + struct.pack("<Q", len(items)) + body


def gguf(family: str, **keys) -> bytes:
    """A header with a vocabulary before the keys of the architecture, as converters write it."""
    entries = {"general.architecture": family, "tokenizer.ggml.tokens": ["a"] * 5_000}
    entries |= {f"{family}.{key.replace('__', '.')}": value for key, value in keys.items()}
    body = b"".join(text(key) + packed(value) for key, value in entries.items())
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + body


QWEN_3_8B = {
    "block_count": 36,
    "embedding_length": 4096,
    "attention__head_count": 32,
    "attention__head_count_kv": 8,
    "attention__key_length": 128,
    "attention__value_length": 128,
    "attention__layer_norm_rms_epsilon": 1e-6,
}
FILES = {
    "Qwen3-8B": ("qwen3", QWEN_3_8B),
    "Mistral-7B-v0.1": (
        "llama",
        {
            "block_count": 32,
            "embedding_length": 4096,
            "attention__head_count": 32,
            "attention__head_count_kv": 8,
            "attention__sliding_window": 4096,
        },
    ),
    "gemma-3-27b-it": (
        "gemma3",
        {
            "block_count": 62,
            "embedding_length": 5376,
            "attention__head_count": 32,
            "attention__head_count_kv": 16,
            "attention__key_length": 128,
            "attention__value_length": 128,
            "attention__sliding_window": 1024,
        },
    ),
    "gemma-4-E2B-it": (
        "gemma4",
        {
            "block_count": 35,
            "embedding_length": 1536,
            "attention__head_count": 8,
            "attention__head_count_kv": 1,
            "attention__key_length": 512,
            "attention__value_length": 512,
            "attention__key_length_swa": 256,
            "attention__value_length_swa": 256,
            "attention__sliding_window": 512,
            "attention__sliding_window_pattern": [(i + 1) % 5 != 0 for i in range(35)],
            "attention__shared_kv_layers": 20,
        },
    ),
    "DeepSeek-V3": (
        "deepseek2",
        {
            "block_count": 61,
            "attention__head_count": 128,
            "attention__head_count_kv": 1,
            "attention__kv_lora_rank": 512,
            "attention__q_lora_rank": 1536,
            "attention__key_length": 576,
            "attention__value_length": 512,
            "attention__key_length_mla": 192,
            "attention__value_length_mla": 128,
            "rope__dimension_count": 64,
        },
    ),
    "Qwen3.5-27B": (
        "qwen35",
        {
            "block_count": 65,
            "nextn_predict_layers": 1,
            "embedding_length": 5120,
            "attention__head_count": 24,
            "attention__head_count_kv": 4,
            "attention__key_length": 256,
            "attention__value_length": 256,
            "full_attention_interval": 4,
            "ssm__conv_kernel": 4,
            "ssm__inner_size": 6144,
            "ssm__state_size": 128,
            "ssm__group_count": 16,
            "ssm__time_step_rank": 48,
        },
    ),
    "LFM2-2.6B": (
        "lfm2",
        {
            "block_count": 30,
            "embedding_length": 2048,
            "attention__head_count": 32,
            "attention__head_count_kv": [
                8 if kind == "full_attention" else 0
                for kind in preset("LFM2-2.6B").config["layer_types"]
            ],
            "shortconv__l_cache": 3,
        },
    ),
    "Falcon-H1-7B-Instruct": (
        "falcon-h1",
        {
            "block_count": 44,
            "embedding_length": 3072,
            "attention__head_count": 12,
            "attention__head_count_kv": 2,
            "attention__key_length": 128,
            "attention__value_length": 128,
            "ssm__conv_kernel": 4,
            "ssm__inner_size": 3072,
            "ssm__state_size": 256,
            "ssm__group_count": 1,
        },
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_header_gives_the_cache_of_the_config(name):
    family, keys = FILES[name]
    settings = llamacpp.Settings(32_768, slots=2)
    by_header = llamacpp.cache(plan_gguf(gguf(family, **keys)), settings)
    by_config = llamacpp.cache(plan(preset(name).config), settings)
    assert by_header.kv_bytes == by_config.kv_bytes
    assert by_header.recurrent_bytes == by_config.recurrent_bytes


def test_feed_forward_layers_of_nemotron_h_keep_nothing() -> None:
    keys = {
        "block_count": 4,
        "embedding_length": 4096,
        "attention__head_count": [0, 32, 0, 0],
        "attention__head_count_kv": [0, 8, 0, 0],
        "attention__key_length": 128,
        "feed_forward_length": [0, 0, 21_504, 0],
        "ssm__conv_kernel": 4,
        "ssm__inner_size": 8192,
        "ssm__state_size": 128,
        "ssm__group_count": 8,
    }
    kinds = [(entry.kind, entry.layers) for entry in plan_gguf(gguf("nemotron_h", **keys)).entries]
    assert kinds == [("state", (0, 3)), ("full", (1,))]


def test_files_from_before_absorbed_mla_keep_full_heads() -> None:
    keys = {
        "block_count": 27,
        "attention__head_count": 16,
        "attention__head_count_kv": 16,
        "attention__kv_lora_rank": 512,
        "attention__key_length": 192,
        "attention__value_length": 128,
    }
    assert plan_gguf(gguf("deepseek2", **keys)).bytes(1) == 27 * 16 * (192 + 128) * 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a GGUF file"),
        (b"PK\x03\x04" + bytes(100), "not a GGUF file"),
        (b"GGUF", "ends beyond the first 4 bytes: give more"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version must be 2 or 3, not 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "at most 100,000 keys"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "general.architecture is missing"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<I", 99),
            "unknown type 99",
        ),
        (gguf("llama"), "llama.block_count is missing"),
        (gguf("llama", block_count=0), "llama.block_count must be"),
        (gguf("qwen3", **QWEN_3_8B)[:-1], "give more"),
        (
            gguf("qwen3", **QWEN_3_8B, attention__compression=4),
            "qwen3.attention.compression: not known for this architecture",
        ),
        (
            gguf("qwen3", **QWEN_3_8B, ssm__inner_size=4),
            "qwen3.ssm.inner_size: not known for this architecture",
        ),
        (
            gguf("brand-new", **QWEN_3_8B, attention__sliding_window=512),
            "which layers of brand-new slide is not known",
        ),
        (gguf("kimi-linear", block_count=4, kda__head_dim=128), "KDA is read from a config.json"),
        (
            gguf("qwen3", **{**QWEN_3_8B, "attention__head_count_kv": [8, 8]}),
            "one item per layer, 36 in all, not 2",
        ),
    ],
)
def test_what_is_damaged_or_unknown_is_refused(content, message):
    with pytest.raises(MemoryPlanError, match=message):
        plan_gguf(content)


def test_the_command_reads_a_file(capsys, tmp_path):
    path = tmp_path / "qwen3-8b.gguf"
    path.write_bytes(gguf("qwen3", **QWEN_3_8B) + bytes(1_000))
    arguments = ["memory", "--config", str(path), "--context", "32768", "--engine", "llamacpp"]
    assert main([*arguments, "--gpu", "L4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kv_bytes"] == 32_768 * 147_456
    assert found["budget"]["weight_bytes"] == path.stat().st_size


def test_long_arrays_are_passed_over() -> None:
    assert read_header(gguf("llama", block_count=2)) == {
        "general.architecture": "llama",
        "tokenizer.ggml.tokens": None,
        "llama.block_count": 2,
    }


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_damaged_bytes_end_in_a_number_or_a_refusal(name, data):
    family, keys = FILES[name]
    content = bytearray(gguf(family, **keys))
    start = content.index(b"block_count") - 20
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(start, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert plan_gguf(bytes(content)).bytes(1_000) >= 0
    except MemoryPlanError:
        return


def test_the_gguf_package_writes_and_reads_the_same(tmp_path):
    """Its writer made the file, tensors and all; its reader is the oracle."""
    path = tmp_path / "model.gguf"
    writer = GGUFWriter(path, "qwen3")
    writer.add_block_count(36)
    writer.add_embedding_length(4096)
    writer.add_head_count(32)
    writer.add_head_count_kv([8] * 35 + [4])
    writer.add_key_length(128)
    writer.add_value_length(128)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_causal_attention(True)
    writer.add_name("A name that is no \u2026 ASCII")
    writer.add_token_list([f"token {number}".encode() for number in range(5_000)])
    writer.add_tensor("blk.0.attn_q.weight", np.ones((64, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    content = path.read_bytes()
    found = read_header(content[:-4_096])  # without the end of the tensor
    fields = GGUFReader(path).fields
    wanted = {key: field.contents() for key, field in fields.items() if key[:5] != "GGUF."}
    assert wanted.pop("tokenizer.ggml.tokens")[4_999] == "token 4999"
    assert found.pop("tokenizer.ggml.tokens") is None  # too long to be about layers
    assert found == wanted
    assert found["general.name"] == "A name that is no \u2026 ASCII"
