"""Attention that keeps every token: the KV heads of each public way of writing them.

Figures are bytes per token in 16 bits, from the shapes in the published config.json files.
"""

import pytest

from tests.memory.shapes import BF16, GEMMA_2, LLAMA, slope
from tinyllm.memory import plan


@pytest.mark.parametrize(
    ("config", "bytes_per_token"),
    [
        pytest.param(LLAMA, 131_072, id="grouped"),
        pytest.param({**LLAMA, "num_key_value_heads": None}, 524_288, id="null means all heads"),
        pytest.param({**LLAMA, "head_dim": 64}, 65_536, id="explicit head_dim"),
        pytest.param(
            {"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768}, 36_864, id="GPT-2"
        ),
        pytest.param(
            {
                "model_type": "falcon",
                "num_hidden_layers": 60,
                "hidden_size": 8192,
                "num_attention_heads": 128,
                "num_kv_heads": 8,
                "multi_query": True,
                "new_decoder_architecture": True,
            },
            60 * 8 * 64 * 4,
            id="Falcon-40B",
        ),
        pytest.param(
            {
                "model_type": "gpt_bigcode",
                "n_layer": 40,
                "n_head": 48,
                "n_embd": 6144,
                "multi_query": True,
            },
            40 * 128 * 4,
            id="StarCoder",
        ),
        pytest.param(
            {
                "model_type": "chatglm",
                "num_layers": 28,
                "num_attention_heads": 32,
                "hidden_size": 4096,
                "kv_channels": 128,
                "multi_query_attention": True,
                "multi_query_group_num": 2,
            },
            28_672,
            id="ChatGLM3-6B",
        ),
        pytest.param(
            {
                "model_type": "dbrx",
                "n_layers": 40,
                "n_heads": 48,
                "d_model": 6144,
                "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
                "ffn_config": {"moe_num_experts": 16},
            },
            163_840,
            id="DBRX",
        ),
        pytest.param(
            {
                "model_type": "step3_text",
                "num_hidden_layers": 61,
                "hidden_size": 7168,
                "num_attention_heads": 64,
                "num_attention_groups": 1,
                "head_dim": 256,
                "share_q_dim": 2048,
            },
            61 * 256 * 4,
            id="Step 3",
        ),
        pytest.param(
            {
                "model_type": "deci",
                "num_hidden_layers": 4,
                "hidden_size": 4096,
                "num_attention_heads": 32,
                "num_key_value_heads_per_layer": [4, 4, 2, 1],
            },
            11 * 128 * 4,
            id="DeciLM",
        ),
        pytest.param({"model_type": "llava", "text_config": LLAMA}, 131_072, id="nested"),
        pytest.param(
            {"model_type": "llava", "text_config": {"model_type": "llama"}},
            524_288,
            id="LLaVA-1.5 leaves out class defaults",
        ),
        pytest.param(
            {
                "model_type": "qwen2_5_omni",
                "thinker_config": {"text_config": {**LLAMA, "model_type": "qwen2_5_omni_text"}},
            },
            131_072,
            id="nested twice",
        ),
    ],
)
def test_bytes_per_token(config, bytes_per_token):
    assert slope(config) == bytes_per_token


def test_heads_of_single_layers() -> None:
    """Gemma 4's full layers as transformers 5.24 writes them, and as they were published."""
    gemma = {**GEMMA_2, "model_type": "gemma4_text", "num_hidden_layers": 6}
    rows = {"05": {"head_dim": 512, "num_key_value_heads": 2}}
    published = {
        "global_head_dim": 512,
        "num_global_key_value_heads": 2,
        "attention_k_eq_v": True,
        "num_kv_shared_layers": 0,
    }
    new, old = plan({**gemma, "per_layer_config": rows}), plan({**gemma, **published})
    assert [entry.layer for entry in new.entries] == [entry.layer for entry in old.entries]
    assert new.bytes_per_token(2**30, BF16) == 2 * 512 * 4


def test_encoder_decoder_has_cross_attention_that_does_not_grow() -> None:
    t5 = {"model_type": "t5", "num_layers": 24, "num_heads": 16, "d_kv": 64, "n_positions": 512}
    model = plan({**t5, "is_encoder_decoder": True})
    per_token = 24 * 16 * 64 * 4
    assert model.bytes(0) == 512 * per_token
    assert model.bytes(100) == 612 * per_token
    assert model.with_encoder_tokens(10).bytes(100) == 110 * per_token
