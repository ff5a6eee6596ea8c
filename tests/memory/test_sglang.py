"""Our SGLang rules against what its start-up logs printed, and the split of its pools."""

import pytest

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan
from tinyllm.memory.engines import sglang
from tinyllm.memory.presets import preset

GIBIBYTE = 2**30


def named(name):
    return plan(preset(name).config)


def test_keys_and_values_of_a_log() -> None:
    """K 8.23 GB, V 8.23 GB: https://github.com/vllm-project/vllm/issues/21348."""
    settings = sglang.Settings(tensor_parallel=4)
    held = sglang.held(named("Qwen3-235B-A22B"), settings, tokens=367_404)
    assert (held.k_bytes, held.v_bytes) == (8_841_209_856, 8_841_209_856)
    assert held.log_line == (
        "KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB"
    )


def test_latents_and_index_keys_of_a_log() -> None:
    """975,424 tokens in 43.67 GiB: https://github.com/sgl-project/sglang/pull/11309."""
    settings = sglang.Settings(dtype="fp8_ds_mla")
    model = named("DeepSeek-V3.2")
    assert sglang.per_token(model, settings).full == 48_068
    assert sglang.held(model, settings, tokens=975_424).k_bytes == 46_886_680_832


def test_more_gpus_than_heads_repeat_them() -> None:
    model = named("Qwen3-235B-A22B")
    four, eight = (sglang.per_token(model, sglang.Settings(tensor_parallel=n)) for n in (4, 8))
    assert four == eight


def test_windowed_layers_have_a_pool_of_their_own() -> None:
    """gpt-oss-20b: a token costs 24,576 bytes in full layers and 0.8 of that in windowed ones."""
    pools = sglang.pools(named("gpt-oss-20b"), sglang.Settings(), 24_576 * 18 * 1_000)
    assert (pools.tokens, pools.window_tokens) == (10_000, 8_000)
    assert pools.k_bytes + pools.v_bytes == 24_576 * 18_000


def test_windowed_layers_alone_share_nothing() -> None:
    pools = sglang.pools(named("Mistral-7B-v0.1"), sglang.Settings(), 131_072 * 5_000)
    assert pools.tokens == pools.window_tokens == 5_000


def test_states_take_their_share_of_the_memory() -> None:
    model = named("Qwen3.5-27B")
    each = sglang.per_token(model, sglang.Settings())
    pools = sglang.pools(model, sglang.Settings(mamba_full_memory_ratio=1.0), 40 * GIBIBYTE)
    assert pools.state_slots == 20 * GIBIBYTE // each.state
    assert pools.tokens == (40 * GIBIBYTE - pools.state_slots * each.state) // 65_536


def test_tokens_come_in_pages() -> None:
    pools = sglang.pools(named("DeepSeek-V3"), sglang.Settings(page_size=64), 70_272 * 1_000)
    assert pools.tokens == 960


def test_index_keys_beside_kv_heads_are_16_bit() -> None:
    each = sglang.per_token(named("MiniMax-M3"), sglang.Settings())
    assert each.full == 60 * 4 * 256 * 2 + 57 * 256


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("Qwen3-8B", {"dtype": "q8_0"}, "SGLang has no cache type 'q8_0': one of bfloat16"),
        ("Qwen3-8B", {"tensor_parallel": 0}, "tensor_parallel must be"),
        ("Qwen3-8B", {"swa_full_tokens_ratio": 0}, "swa_full_tokens_ratio must be above 0"),
        ("DeepSeek-V4-Flash", {}, "how SGLang 0.5 sizes compressed layers is not known"),
    ],
)
def test_what_is_not_known_is_refused(model, settings, message):
    with pytest.raises(MemoryPlanError, match=message):
        sglang.per_token(named(model), sglang.Settings(**settings))
