"""Latent attention, its indexers, and layers that keep compressed tokens.

Figures are bytes per token in 16 bits, from the shapes in the published config.json files.
"""

import pytest

from tests.memory.shapes import DEEPSEEK, LLAMA, slope
from tinyllm.memory import plan


@pytest.mark.parametrize(
    ("config", "bytes_per_token"),
    [
        pytest.param(
            {"model_type": "kimi_k25", "text_config": {**DEEPSEEK, "model_type": "kimi_k2"}},
            70_272,
            id="nested latent",
        ),
        pytest.param(
            {
                "model_type": "longcat_flash",
                "num_layers": 28,
                "kv_lora_rank": 512,
                "qk_rope_head_dim": 64,
            },
            2 * 28 * 1152,
            id="LongCat-Flash",
        ),
        pytest.param(
            {**LLAMA, "model_type": "deepseek_v2", "use_mla": False, "kv_lora_rank": None},
            131_072,
            id="latent switched off",
        ),
        pytest.param(
            {
                **DEEPSEEK,
                "model_type": "glm_moe_dsa",
                "num_hidden_layers": 7,
                "index_head_dim": 128,
                "index_topk_freq": 4,
                "index_skip_topk_offset": 3,
            },
            7 * 1152 + 4 * 256,
            id="indexer in layers 0, 1, 2 and 6",
        ),
    ],
)
def test_bytes_per_token(config, bytes_per_token):
    assert slope(config) == bytes_per_token


def test_compressed_layers_under_both_names() -> None:
    base = {
        "model_type": "deepseek_v4",
        "num_hidden_layers": 3,
        "num_attention_heads": 64,
        "head_dim": 512,
        "sliding_window": 128,
        "index_head_dim": 128,
    }
    names = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
    rates = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
    old = plan({**base, "compress_ratios": [0, 4, 128, 0]})
    assert plan({**base, "layer_types": names, "compress_rates": rates}) == old
    assert old.bytes(128) == 3 * 128 * 1024 + 32 * (1024 + 256) + 1024
