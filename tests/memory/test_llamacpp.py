"""Our llama.cpp rules against 212 totals, and against what people measured.

The totals are of four settings for each of 53 models; they stand beside the presets.
"""

import pytest

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan
from tinyllm.memory.conformance import answers, llamacpp_checks
from tinyllm.memory.engines import llamacpp
from tinyllm.memory.presets import preset, presets

ROWS = answers("llamacpp")["rows"]
PLANS = {name: plan(item.config) for name, item in presets().items()}
LFM2 = {
    "model_type": "lfm2",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "conv_L_cache": 3,
    "layer_types": [
        "full_attention" if layer in (2, 5, 8, 10, 12, 14) else "conv" for layer in range(16)
    ],
}
GEMMA_3_270M = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 18,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "hidden_size": 640,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_totals(row):
    (check,) = llamacpp_checks(row)
    assert check.ours == check.right


def test_every_total_is_tried() -> None:
    assert len(ROWS) == 212


@pytest.mark.parametrize(
    ("config", "settings", "kv_bytes"),
    [
        pytest.param(
            LFM2,
            llamacpp.Settings(32_768, slots=1),
            402_653_184,
            id="https://github.com/gpustack/gguf-parser-go/issues/31",
        ),
        pytest.param(
            GEMMA_3_270M,
            llamacpp.Settings(1_024, slots=4),
            18_874_368,
            id="https://github.com/unslothai/unsloth/pull/7530",
        ),
        pytest.param(
            preset("gemma-3-4b-it").config,
            llamacpp.Settings(131_072, slots=1),
            2_866_806_784,
            id="https://github.com/ollama/ollama/pull/17037",
        ),
        pytest.param(
            preset("gpt-oss-20b").config,
            llamacpp.Settings(32_768, slots=1, key_type="q8_0", value_type="q8_0"),
            437_846_016,
            id="12 x 32,768 and 12 x 768 cells of 34 bytes per 32",
        ),
    ],
)
def test_what_was_measured(config, settings, kv_bytes):
    assert llamacpp.cache(plan(config), settings).kv_bytes == kv_bytes


def test_three_slots_cost_more_than_four() -> None:
    """Each slot is padded to 256 cells on its own."""
    three, four = (
        llamacpp.cache(plan(GEMMA_3_270M), llamacpp.Settings(1_024, slots=slots))
        for slots in (3, 4)
    )
    assert (three.cells, four.cells) == (1_536, 1_024)
    assert three.kv_bytes > four.kv_bytes


def test_without_a_number_of_slots_four_share_one_cache() -> None:
    qwen = PLANS["Qwen/Qwen3.5-27B"]
    shared = llamacpp.cache(qwen, llamacpp.Settings(4_000))
    apart = llamacpp.cache(qwen, llamacpp.Settings(4_000, slots=4))
    assert shared.cells == apart.cells == 4_096
    assert shared.recurrent_bytes == apart.recurrent_bytes == 4 * 48 * (30_720 + 786_432) * 4


def test_windows_that_are_ignored_are_said() -> None:
    cache = llamacpp.cache(PLANS["mistralai/Mistral-7B-v0.1"], llamacpp.Settings(32_768))
    assert cache.kv_bytes == 32_768 * 131_072
    assert "ignores this model's window" in cache.notes[0]


def test_a_full_window_cache_on_request() -> None:
    settings = llamacpp.Settings(32_768, slots=1, swa_full=True)
    assert llamacpp.cache(PLANS["openai/gpt-oss-20b"], settings).kv_bytes == 32_768 * 49_152


def test_heads_that_blocks_do_not_divide_do_not_start() -> None:
    settings = llamacpp.Settings(4_096, key_type="q8_0", value_type="q8_0")
    cache = llamacpp.cache(PLANS["tencent/Hunyuan-Large"], settings)
    assert not cache.starts
    assert "blocks do not divide a head of 80" in cache.notes[0]
    assert "needs flash attention" in cache.notes[1]
    assert llamacpp.cache(PLANS["tencent/Hunyuan-Large"], llamacpp.Settings(4_096)).starts


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("Qwen/Qwen3-8B", {"context": 0}, "context must be a whole number"),
        ("Qwen/Qwen3-8B", {"slots": 0}, "slots must be"),
        ("Qwen/Qwen3-8B", {"key_type": "fp8"}, "llama.cpp has no cache type 'fp8': one of float32"),
        ("deepseek-ai/DeepSeek-V3.2", {}, "how llama.cpp sizes index layers is not known"),
        ("openai/whisper-large-v3", {}, "how llama.cpp sizes cross layers is not known"),
    ],
)
def test_what_is_not_known_is_refused(model, settings, message):
    with pytest.raises(MemoryPlanError, match=message):
        llamacpp.cache(PLANS[model], llamacpp.Settings(**{"context": 4_096} | settings))


def test_an_architecture_with_an_unknown_window_is_refused() -> None:
    config = {**GEMMA_3_270M, "model_type": "vaultgemma"}
    with pytest.raises(MemoryPlanError, match="honours the window of 'vaultgemma' is not known"):
        llamacpp.cache(plan(config), llamacpp.Settings(4_096))
