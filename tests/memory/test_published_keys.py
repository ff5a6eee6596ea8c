"""Keys that single models publish beside their shape, and kinds of models that are no decoders."""

import pytest

from tests.memory.shapes import LLAMA, slope
from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan


@pytest.mark.parametrize(
    ("keys", "bytes_per_token"),
    [
        pytest.param(
            {"model_type": "mpt", "attn_config": {"attn_type": "multiquery_attention"}},
            524_288 // 32,
            id="MPT with one KV head",
        ),
        pytest.param(
            {"model_type": "hf_olmo", "multi_query_attention": True, "block_group_size": 1},
            524_288 // 32,
            id="OLMo's own code with one KV head",
        ),
        pytest.param(
            {"model_type": "ernie4_5_moe_vl", "temporal_conv_size": 2, "compression_ratio": 1.0},
            524_288,
            id="ERNIE VL",
        ),
        pytest.param({"model_type": "grok-1", "max_attn_value": 30.0}, 524_288, id="Grok-1"),
        pytest.param({"model_type": "minicpm", "dim_model_base": 256}, 524_288, id="MiniCPM"),
        pytest.param({"model_type": "laguna", "gating_types": ["per_head"]}, 524_288, id="Laguna"),
        pytest.param({"model_type": "phi4mm", "full_attn_mod": 1}, 524_288, id="Phi-4 multimodal"),
    ],
)
def test_keys_that_single_models_publish(keys, bytes_per_token):
    shape = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    assert slope({**shape, **keys}) == bytes_per_token


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"is_encoder_decoder": True}, "is_encoder_decoder is true, and model_type 'made_up'"),
        ({"architectures": ["LayoutLMForMaskedLM"]}, "architectures names a masked language model"),
    ],
)
def test_an_unknown_model_that_is_no_decoder_alone_is_refused(keys, message):
    with pytest.raises(MemoryPlanError, match=message):
        plan({**LLAMA, "model_type": "made_up", **keys})
