"""Layers whose state does not grow: state-space, linear attention, convolution.

Figures are in 16 bits, from the shapes in the published config.json files.
"""

import pytest

from tests.memory.shapes import LLAMA, slope
from tinyllm.memory import plan

STATE = {**LLAMA, "num_hidden_layers": 4, "hidden_size": 4096}
MAMBA_2 = {
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_d_conv": 4,
}
MAMBA_2_BYTES = (3 * (128 * 64 + 2 * 128) + 128 * 64 * 128) * 2


@pytest.mark.parametrize(
    ("config", "constant", "growing"),
    [
        pytest.param(
            {**STATE, **MAMBA_2, "model_type": "bamba", "attn_layer_indices": [2]},
            3 * MAMBA_2_BYTES,
            1,
            id="Bamba",
        ),
        pytest.param(
            {**STATE, **MAMBA_2, "model_type": "falcon_h1"}, 4 * MAMBA_2_BYTES, 4, id="parallel"
        ),
        pytest.param(
            {
                "model_type": "falcon_mamba",
                "num_hidden_layers": 64,
                "hidden_size": 4096,
                "state_size": 16,
                "conv_kernel": 4,
                "expand": 2,
            },
            64 * (3 * 8192 + 8192 * 16) * 2,
            0,
            id="Falcon-Mamba",
        ),
        pytest.param(
            {
                "model_type": "mamba",
                "num_hidden_layers": 64,
                "hidden_size": 4096,
                "num_heads": 128,
                "head_dim": 64,
                "n_groups": 8,
                "state_size": 128,
                "conv_kernel": 4,
                "expand": 2,
            },
            64 * (3 * (8192 + 2 * 8 * 128) + 8192 * 128) * 2,
            0,
            id="Mamba-Codestral is Mamba-2",
        ),
        pytest.param(
            {
                **{key: value for key, value in STATE.items() if key != "num_hidden_layers"},
                **MAMBA_2,
                "mamba_ssm_cache_dtype": "float32",
                "model_type": "nemotron_h",
                "layers_block_type": ["mamba", "moe", "attention", "mlp"],
            },
            MAMBA_2_BYTES + 8192 * 128 * 2,
            1,
            id="Nemotron-H, whose list says how many",
        ),
        pytest.param(
            {
                **STATE,
                "model_type": "recurrent_gemma",
                "attention_window_size": 2048,
                "conv1d_width": 4,
                "block_types": ["recurrent", "recurrent", "attention"],
            },
            3 * (3 * 4096 * 2 + 4096 * 4),
            0,
            id="RecurrentGemma",
        ),
        pytest.param(
            {**STATE, "model_type": "minimax_text_01", "attn_type_list": [0, 0, 0, 1]},
            3 * 32 * 128 * 128 * 2,
            1,
            id="MiniMax-Text-01",
        ),
        pytest.param(
            {
                **STATE,
                "model_type": "lfm2",
                "conv_L_cache": 3,
                "layer_types": ["conv", "conv", "full_attention", "conv"],
            },
            3 * 2 * 4096 * 2,
            1,
            id="LFM2",
        ),
    ],
)
def test_states(config, constant, growing):
    model = plan(config)
    assert model.bytes(0) == constant
    assert slope(config) == growing * 8 * 128 * 4
