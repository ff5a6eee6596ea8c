"""Our vLLM rules against 224 answers of vLLM 0.32's own planner, and against public start-up logs.

The planner answered at four settings for each of 56 models; the answers stand beside the presets.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan
from tinyllm.memory.conformance import answers, vllm_checks
from tinyllm.memory.engines import vllm
from tinyllm.memory.presets import preset, presets

ROWS = answers("vllm")["rows"]
PLANS = {name: plan(item.config) for name, item in presets().items()}
SIZED = sorted({row[0] for row in ROWS})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_planner_s_answers(row):
    checks = list(vllm_checks(row))
    assert len(checks) == 7
    assert [check for check in checks if not check.agrees] == []


def test_every_answer_is_tried() -> None:
    assert len(ROWS) == 224
    assert len(SIZED) == 56


def test_blocks_of_a_small_pool() -> None:
    """1952 GPU blocks: https://github.com/vllm-project/vllm/issues/10517."""
    settings = vllm.Settings(max_model_len=8_192, pool_bytes=4_093_640_704)
    pool = vllm.pool(PLANS["meta-llama/Meta-Llama-3.1-8B"], settings)
    assert pool.num_blocks == 1_952
    assert pool.num_blocks * pool.block_size == 31_232


def test_one_log_with_two_contradicting_lines() -> None:
    """290,864 tokens and 33.04x: https://github.com/vllm-project/vllm/issues/40691."""
    settings = vllm.Settings(
        max_model_len=32_768, pool_bytes=1_487 * 51_380_224, prefix_caching=False
    )
    pool = vllm.pool(PLANS["Qwen/Qwen3.5-27B"], settings)
    assert pool.block_size == 784
    assert pool.num_blocks == 1_487
    assert pool.blocks_per_request == 42 + 3
    assert pool.old_log_tokens == 290_864
    assert pool.log_tokens == 1_082_800
    assert f"{pool.max_concurrency:.2f}" == "33.04"


def test_a_log_that_divides_by_the_groups() -> None:
    """26,800 tokens is no capacity: https://github.com/alvarobartt/hf-mem/pull/61."""
    settings = vllm.Settings(max_model_len=32_768, pool_bytes=26_349_624_360)
    pool = vllm.pool(PLANS["google/gemma-4-31B-it"], settings)
    assert pool.num_blocks == 10_051
    assert pool.old_log_tokens == 26_800
    assert f"{pool.max_concurrency:.2f}" == "1.55"


def test_sequences_are_limited_by_state_blocks() -> None:
    settings = vllm.Settings(max_model_len=32_768, pool_bytes=20 * 2**30)
    assert vllm.pool(PLANS["Qwen/Qwen3.5-27B"], settings).max_num_seqs_limit == 417
    assert vllm.pool(PLANS["Qwen/Qwen3-8B"], settings).max_num_seqs_limit is None


@pytest.mark.parametrize(
    ("model", "block_size"),
    [
        ("Qwen3-Next-80B-A3B-Instruct", 544),
        ("Qwen3.5-27B", 784),
        ("Qwen3.6-35B-A3B", 1056),
        ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 2096),
        ("Kimi-Linear-48B-A3B-Instruct", 1920),
    ],
)
def test_states_enlarge_the_block(model, block_size):
    settings = vllm.Settings(max_model_len=32_768, pool_bytes=20 * 2**30)
    assert vllm.pool(plan(preset(model).config), settings).block_size == block_size


def test_the_log_lines() -> None:
    settings = vllm.Settings(max_model_len=32_768, pool_bytes=40 * 2**30)
    assert vllm.pool(PLANS["meta-llama/Meta-Llama-3.1-8B"], settings).log_lines == (
        "Available KV cache memory: 40.00 GiB",
        "GPU KV cache size: 327,680 tokens",
        "Maximum concurrency for 32,768 tokens per request: 10.00x",
    )


def test_pipeline_stages_share_the_fewest_blocks() -> None:
    """30 layers on 4 GPUs are 7, 8, 8 and 7; a stage of 8 has the fewest blocks."""
    model = PLANS["HuggingFaceTB/SmolLM2-135M-Instruct"]
    alone = vllm.Settings(max_model_len=8_192, pool_bytes=2**30)
    staged = vllm.Settings(max_model_len=8_192, pool_bytes=2**30, pipeline_parallel=4)
    assert vllm.pool(model, alone).bytes_per_block == 30 * 16 * 768
    assert vllm.pool(model, staged).bytes_per_block == 8 * 16 * 768
    assert vllm.pool(model, staged).num_blocks == 2**30 // (8 * 16 * 768)
    assert staged.in_flight == 5 * 8_192


def test_layers_that_keep_nothing_count_for_the_stages() -> None:
    """4 layers on 2 GPUs are 2 and 2, though only the first two hold a cache."""
    shared = {
        "model_type": "gemma3n_text",
        "num_hidden_layers": 4,
        "num_kv_shared_layers": 2,
        "num_attention_heads": 1,
        "head_dim": 64,
        "sliding_window": None,
    }
    settings = vllm.Settings(max_model_len=8, pool_bytes=2**20, pipeline_parallel=2)
    assert vllm.pool(plan(shared), settings).bytes_per_block == 2 * 16 * 256


def test_fp8_halves_the_page() -> None:
    settings = vllm.Settings(max_model_len=8_192, pool_bytes=2**30, dtype="fp8")
    assert vllm.pool(PLANS["Qwen/Qwen3-8B"], settings).bytes_per_block == 2_359_296 // 2


@pytest.mark.parametrize("dtype", ["fp8_ds_mla", "fp8"])
def test_latents_in_deepseek_s_layout(dtype):
    settings = vllm.Settings(max_model_len=8_192, pool_bytes=2**33, dtype=dtype)
    pool = vllm.pool(PLANS["deepseek-ai/DeepSeek-V3.2"], settings)
    assert pool.bytes_per_block == 16 * 61 * (656 + 132)


def test_a_model_of_states_alone() -> None:
    mamba = {
        "model_type": "falcon_mamba",
        "num_hidden_layers": 64,
        "hidden_size": 4096,
        "state_size": 16,
        "conv_kernel": 4,
        "expand": 2,
    }
    state = (3 * 8192 + 8192 * 16) * 2
    settings = vllm.Settings(
        max_model_len=131_072, pool_bytes=100 * 64 * state, prefix_caching=False
    )
    pool = vllm.pool(plan(mamba), settings)
    assert (pool.num_blocks, pool.blocks_per_request) == (100, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(SIZED),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([2_048, 16_384]),
    st.integers(2**28, 2**37),
)
def test_the_largest_length_starts_and_the_next_does_not(name, ranks, batched, pool_bytes):
    settings = vllm.Settings(1, pool_bytes, batched, tensor_parallel=ranks)
    most = vllm.largest_model_len(PLANS[name], settings)
    for length, starts in ((most, True), (most + 1, False)):
        if 1 <= length <= 2**40:
            sized = vllm.Settings(length, pool_bytes, batched, tensor_parallel=ranks)
            assert vllm.pool(PLANS[name], sized).starts == starts


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SIZED), st.integers(0, 4))
def test_more_gpus_never_cost_one_of_them_more(name, power):
    few, more = (
        vllm.pool(PLANS[name], vllm.Settings(8_192, 2**34, tensor_parallel=2**doubled))
        for doubled in (power, power + 1)
    )
    assert more.key_bytes_per_token <= few.key_bytes_per_token
    assert more.value_bytes_per_token <= few.value_bytes_per_token


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("Qwen/Qwen3-8B", {"max_model_len": 0}, "max_model_len must be a whole number from 1"),
        ("Qwen/Qwen3-8B", {"dtype": "q8_0"}, "vLLM has no cache type 'q8_0': one of float32"),
        ("Qwen/Qwen3-8B", {"tensor_parallel": 0}, "tensor_parallel must be"),
        ("Qwen/Qwen3-8B", {"pool_bytes": -1}, "pool_bytes must be"),
        ("Qwen/Qwen3-8B", {"pipeline_parallel": 37}, "at most the number of layers, 36, not 37"),
        ("deepseek-ai/DeepSeek-V4-Flash", {}, "how vLLM 0.32 sizes compressed layers"),
    ],
)
def test_what_vllm_would_not_do_is_refused(model, settings, message):
    with pytest.raises(MemoryPlanError, match=message):
        vllm.pool(
            PLANS[model], vllm.Settings(**{"max_model_len": 8, "pool_bytes": 2**30} | settings)
        )


def test_pages_that_cannot_be_one_size_are_refused() -> None:
    rows = [
        {"kind": "full", "count": 1, "heads": 1, "head_dim": 96},
        {"kind": "window", "count": 1, "heads": 1, "head_dim": 64, "limit": 128},
    ]
    with pytest.raises(MemoryPlanError, match=r"a page of 6,144 bytes is not a multiple of"):
        vllm.pool(plan({"layer_plan": rows}), vllm.Settings(8_192, 2**30))
