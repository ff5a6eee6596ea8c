"""Pasted logs: every memory line in words, contradictions resolved, figures checked by a plan."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan
from tinyllm.memory.explain import explain_log
from tinyllm.memory.presets import preset


def explained(log, name=None, **settings):
    return explain_log(log, None if name is None else plan(preset(name).config), **settings)


def test_two_lines_that_contradict_each_other() -> None:
    """https://github.com/vllm-project/vllm/issues/40691: 290,864 tokens and 33.04x in one log."""
    log = (
        "INFO 04-23 12:00:00 [kv_cache_utils.py] GPU KV cache size: 290,864 tokens\n"
        "INFO 04-23 12:00:00 Maximum concurrency for 32,768 tokens per request: 33.04x\n"
    )
    first, second = explained(log, "Qwen3.5-27B").verdicts
    assert not first.agrees
    assert "contradict each other: the concurrency is the capacity" in first.text
    assert second.agrees
    assert second.text == (
        "both lines follow from 1,487 blocks of 51,380,224 bytes: a request reserves 45 blocks in "
        "4 groups, so 1,082,800 tokens fit at full length (prefix caching off)"
    )


def test_memory_narrows_the_blocks_down() -> None:
    """https://github.com/alvarobartt/hf-mem/pull/61: 24.54 GiB and 26,800 tokens."""
    lines = (
        "GPU KV cache size: 26,800 tokens\nMaximum concurrency for 32,768 tokens per request: 1.55x"
    )
    wide = explained(lines, "gemma-4-31B-it").verdicts[1]
    assert " to " in wide.text
    narrow = explained(f"Available KV cache memory: 24.54 GiB\n{lines}", "gemma-4-31B-it")
    assert "from 10,050 to 10,053 blocks" in narrow.verdicts[1].text
    assert "(16,384 tokens in flight)" in narrow.verdicts[1].text
    other = explained(f"Available KV cache memory: 20.00 GiB\n{lines}", "gemma-4-31B-it")
    assert not other.verdicts[1].agrees


def test_lines_that_say_one_thing_twice() -> None:
    log = (
        "GPU KV cache size: 327,680 tokens\n"
        "Maximum concurrency for 32,768 tokens per request: 10.00x"
    )
    assert [verdict.agrees for verdict in explained(log).verdicts] == [True]
    both = explained(log, "meta-llama/Meta-Llama-3.1-8B").verdicts
    assert [verdict.agrees for verdict in both] == [True, True]
    assert "20,480 blocks of 2,097,152 bytes" in both[1].text
    log = f"Available KV cache memory: 40.00 GiB\n{log}"
    assert explained(log, "meta-llama/Meta-Llama-3.1-8B").verdicts[1].agrees
    assert not explained(log, "Qwen3-8B").verdicts[1].agrees


@pytest.mark.parametrize(
    ("log", "name", "settings", "agrees"),
    [
        pytest.param(
            "KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB",
            "Qwen3-235B-A22B",
            {"tensor_parallel": 4},
            True,
            id="https://github.com/vllm-project/vllm/issues/21348",
        ),
        pytest.param(
            "KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB",
            "Qwen3-235B-A22B",
            {"tensor_parallel": 1},
            False,
            id="with the wrong number of GPUs",
        ),
        pytest.param(
            "[TP0] KV Cache is allocated. #tokens: 975424, KV size: 43.67 GB",
            "DeepSeek-V3.2",
            {"dtype": "fp8_ds_mla"},
            True,
            id="https://github.com/sgl-project/sglang/pull/11309",
        ),
        pytest.param(
            "llama_kv_cache: size = 512.00 MiB (4096 cells, 32 layers, 1/1 seqs), "
            "K (f16): 256.00 MiB, V (f16): 256.00 MiB",
            "Mistral-7B-v0.1",
            {},
            True,
            id="a window that llama.cpp ignores",
        ),
        pytest.param(
            "llama_kv_cache: size = 1152.00 MiB (131072 cells, 16 layers, 1/1 seqs), "
            "K (q4_0):  576.00 MiB, V (q4_0):  576.00 MiB",
            "Qwen3.5-27B",
            {},
            False,
            id="another model's",
        ),
        pytest.param(
            "llama_kv_cache: size = 2304.00 MiB (131072 cells, 16 layers, 1/1 seqs), "
            "K (q4_0): 1152.00 MiB, V (q4_0): 1152.00 MiB",
            "Qwen3.5-27B",
            {},
            True,
            id="quantised keys and values",
        ),
        pytest.param(
            "llama_kv_cache: size = 1088.00 MiB ( 32768 cells,  16 layers,  4/1 seqs), "
            "K (q8_0):  544.00 MiB, V (q8_0):  544.00 MiB",
            "Qwen3.5-27B",
            {},
            True,
            id="four slots that share one cache",
        ),
        pytest.param(
            "llama_kv_cache: size = 1152.00 MiB (  4096 cells,  36 layers,  2/ 2 seqs), "
            "K (f16):  576.00 MiB, V (f16):  576.00 MiB",
            "Qwen3-8B",
            {},
            True,
            id="two slots with a cache each",
        ),
        pytest.param(
            "[TP0] KV Cache is allocated. #tokens: 383872, KV size: 25.12 GB",
            "DeepSeek-V3",
            {},
            True,
            id="latents in 16 bits",
        ),
        pytest.param(
            "llama_memory_recurrent: size =  149.62 MiB (     1 cells,  48 layers,  1 seqs), "
            "R (f32):    5.62 MiB, S (f32):  144.00 MiB",
            "Qwen3.5-27B",
            {},
            True,
            id="states",
        ),
    ],
)
def test_sizes_against_the_plan(log, name, settings, agrees):
    (verdict,) = explained(log, name, **settings).verdicts
    assert verdict.agrees == agrees


def test_windowed_layers_have_a_line_of_their_own() -> None:
    """2560 + 174 MiB: https://github.com/ollama/ollama/pull/17037."""
    log = (
        "llama_kv_cache: size = 2560.00 MiB (131072 cells,   5 layers,  1/1 seqs), "
        "K (f16): 1280.00 MiB, V (f16): 1280.00 MiB\n"
        "llama_kv_cache: size =  174.00 MiB (  1536 cells,  29 layers,  1/1 seqs), "
        "K (f16):   87.00 MiB, V (f16):   87.00 MiB\n"
    )
    assert [verdict.agrees for verdict in explained(log, "gemma-3-4b-it").verdicts] == [True, True]


def test_every_memory_line_is_put_into_words() -> None:
    log = "\n".join(
        [
            "Starting server",
            "Model loading took 15.2683 GiB and 3.2 seconds",
            "# GPU blocks: 1952, # CPU blocks: 2048",
            "Setting attention block size to 784 tokens to ensure that attention page size is >=",
            "Add 2 padding layers, may waste at most 7.14% KV cache memory",
            "Graph capturing finished in 21 secs, took 0.61 GiB",
            "max_total_num_tokens=367404, chunked_prefill_size=8192",
            "Use sliding window memory pool. full_layer_tokens=10000, swa_layer_tokens=8000",
            "llama_context:      CUDA0 compute buffer size =   304.75 MiB",
            "load_tensors:   CPU_Mapped model buffer size =  4095.05 MiB",
        ]
    )
    lines = explained(log).lines
    assert [line.number for line in lines] == list(range(2, 11))
    assert lines[0].values == {"bytes": 15.2683 * 2**30}
    assert lines[1].values == {"blocks": 1952.0}
    assert all(line.meaning for line in lines)


def test_what_cannot_be_checked_is_said() -> None:
    log = "KV Cache is allocated. #tokens: 1000, KV size: 1.00 GB"
    (verdict,) = explained(log, "DeepSeek-V4-Flash").verdicts
    assert "not checked: how SGLang 0.5 sizes compressed layers" in verdict.text


def test_too_long_a_log_is_refused() -> None:
    with pytest.raises(MemoryPlanError, match="text of at most 2,000,000 characters"):
        explained("x" * 2_000_001)


PIECES = ["GPU KV cache size: ", "Maximum concurrency for ", " tokens per request: ", "0", "x", ","]
PIECES += ["llama_kv_cache: size = 1.00 MiB (4 cells, 32 layers, 1/1 seqs), K (", "): 1.0 MiB, V ("]
PIECES += [" tokens", "\n", "9" * 30, ".", "KV Cache is allocated. #tokens: ", ", KV size: ", " GB"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_a_damaged_log_is_no_exception_but_a_named_one(log):
    try:
        explained(log, "Meta-Llama-3.1-8B")
    except MemoryPlanError:
        return
