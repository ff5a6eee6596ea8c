"""Exact bytes: every cache type with its scales, the pieces of the curve, and what must hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import CACHE_TYPES, CacheTypes, cache_type, plan
from tinyllm.memory.presets import presets

PLANS = {name: plan(item.config) for name, item in presets().items()}
BF16 = CacheTypes.named("bfloat16")


@pytest.mark.parametrize(
    ("name", "vector"),
    [
        ("float32", 512),
        ("bfloat16", 256),
        ("f16", 256),
        ("fp8", 128),
        ("fp8_e5m2", 128),
        ("int8_per_token_head", 132),
        ("fp8_per_token_head", 132),
        ("int4_per_token_head", 68),
        ("nvfp4", 72),
        ("fp4_e2m1", 72),
        ("q8_0", 136),
        ("q5_1", 96),
        ("q5_0", 88),
        ("q4_1", 80),
        ("q4_0", 72),
        ("iq4_nl", 72),
    ],
)
def test_bytes_of_a_head_of_128(name, vector):
    assert cache_type(name).vector_bytes(128) == vector


def test_keys_and_values_of_different_types() -> None:
    llama = PLANS["meta-llama/Meta-Llama-3.1-8B"]
    assert llama.bytes(1, key_dtype="q8_0", value_dtype="q4_0") == 32 * 8 * (136 + 72)
    assert llama.bytes(1, dtype="q8_0") == 32 * 8 * 2 * 136


def test_latent_rows_in_deepseek_s_fp8_layout() -> None:
    """656 bytes a latent (512 fp8, 4 scales, 64 rotary in 16 bits) and 132 an index key."""
    assert PLANS["deepseek-ai/DeepSeek-V3.2"].bytes(1, dtype="fp8_ds_mla") == 61 * (656 + 132)


def test_the_state_does_not_depend_on_the_cache_type() -> None:
    qwen = PLANS["Qwen/Qwen3.5-27B"]
    assert qwen.bytes(0, dtype="fp8") == qwen.bytes(0, dtype="float32") == qwen.bytes(0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": -1}, "tokens must be a whole number from 0 to"),
        ({"tokens": 1.5}, "tokens must be a whole number"),
        ({"tokens": 1, "sequences": -1}, "sequences must be a whole number"),
        ({"tokens": 1, "dtype": "int3"}, "unknown cache type 'int3': one of float32, bfloat16"),
        ({"tokens": 1, "dtype": []}, r"unknown cache type \[\]"),
        ({"tokens": 1, "dtype": "fp8_ds_mla"}, "fp8_ds_mla is for latent"),
    ],
)
def test_wrong_settings_are_refused(arguments, message):
    with pytest.raises(MemoryPlanError, match=message):
        PLANS["Qwen/Qwen3-8B"].bytes(**arguments)


def test_a_head_that_blocks_do_not_divide_is_refused() -> None:
    odd = {"layer_plan": [{"kind": "full", "count": 1, "heads": 1, "head_dim": 72}]}
    with pytest.raises(MemoryPlanError, match="blocks of 32 elements, and 1 x 72"):
        plan(odd).bytes(1, dtype="q8_0")


@pytest.mark.parametrize("model", PLANS.values(), ids=PLANS.keys())
def test_the_pieces_are_the_curve(model):
    step = 128  # compressed layers grow in steps of at most this
    for piece in model.pieces(BF16):
        end = piece.start + 10 * step if piece.end is None else piece.end
        for tokens in (piece.start, (piece.start + end) // 2 // step * step, end):
            if piece.start <= tokens <= end:
                assert piece.constant + piece.slope * tokens == model.bytes(tokens)


def test_a_windowed_model_has_two_pieces() -> None:
    below, above = PLANS["openai/gpt-oss-20b"].pieces(BF16)
    assert (below.start, below.end, below.constant, below.slope) == (0, 128, 0, 49_152)
    assert (above.start, above.end, above.slope) == (128, None, 24_576)
    assert above.constant == 12 * 128 * 2048


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(sorted(PLANS)),
    st.integers(0, 300_000),
    st.integers(0, 300_000),
    st.integers(1, 64),
)
def test_monotone_linear_and_additive(name, few, more, sequences):
    model = PLANS[name]
    few, more = sorted((few, more))
    assert model.bytes(few) <= model.bytes(more)
    assert model.bytes(few, sequences) == sequences * model.bytes(few)
    assert model.bytes(more) == sum(model.entry_bytes(more, BF16))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_a_window_never_exceeds_full_attention(tokens, window):
    row = {"count": 1, "heads": 8, "head_dim": 64}
    full = plan({"layer_plan": [{"kind": "full", **row}]})
    windowed = plan({"layer_plan": [{"kind": "window", "limit": window, **row}]})
    assert windowed.bytes(tokens) <= full.bytes(tokens)
    assert (windowed.bytes(tokens) == full.bytes(tokens)) == (tokens <= window)


def test_every_type_is_listed_once() -> None:
    assert len(CACHE_TYPES) == 17
