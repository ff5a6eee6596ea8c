"""Which layers of a model see a window or a chunk only, and which grow without end."""

import pytest

from tests.memory.shapes import GEMMA_2, slope
from tinyllm.memory import plan


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        pytest.param(GEMMA_2, 16, id="alternating"),
        pytest.param({**GEMMA_2, "model_type": "gemma3_text"}, 5, id="five of six"),
        pytest.param(
            {**GEMMA_2, "model_type": "exaone4", "sliding_window_pattern": "LLLG"}, 8, id="LLLG"
        ),
        pytest.param(
            {**GEMMA_2, "model_type": "cohere2", "sliding_window_pattern": 2}, 16, id="period"
        ),
        pytest.param(
            {
                **GEMMA_2,
                "model_type": "cohere2",
                "layer_switch": 4,
                "order_of_interleaved_layers": "local_attn_first",
            },
            8,
            id="Command R7B",
        ),
        pytest.param({**GEMMA_2, "model_type": "mistral"}, 0, id="every layer"),
        pytest.param({**GEMMA_2, "model_type": "mistral", "sliding_window": None}, 32, id="null"),
        pytest.param({**GEMMA_2, "model_type": "mistral", "sliding_window": -1}, 32, id="-1"),
        pytest.param(
            {
                **GEMMA_2,
                "model_type": "qwen2",
                "use_sliding_window": False,
                "max_window_layers": 28,
            },
            32,
            id="switched off",
        ),
        pytest.param(
            {**GEMMA_2, "model_type": "qwen2", "max_window_layers": 28}, 32, id="off by default"
        ),
        pytest.param(
            {**GEMMA_2, "model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 28},
            28,
            id="threshold",
        ),
        pytest.param(
            {
                **GEMMA_2,
                "model_type": "nothing known",
                "layer_types": ["sliding_attention"] * 30 + ["full_attention"] * 2,
            },
            2,
            id="layer_types",
        ),
        pytest.param(
            {
                **GEMMA_2,
                "model_type": "llama4_text",
                "attention_chunk_size": 8192,
                "sliding_window": None,
            },
            8,
            id="chunks",
        ),
    ],
)
def test_layers_that_grow_without_end(config, layers):
    assert slope(config) == layers * 8 * 256 * 4


def test_sliding_layers_with_groups_of_their_own() -> None:
    step = {
        "model_type": "step3p5",
        "num_hidden_layers": 2,
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "num_attention_groups": 8,
        "head_dim": 128,
        "sliding_window": 512,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
        "attention_other_setting": {"num_attention_groups": 4, "head_dim": 128},
    }
    assert plan(step).bytes(1000) == 1000 * 4096 + 512 * 2048
