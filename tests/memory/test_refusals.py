"""What no plan is made of: every refusal names the key. And what is passed over."""

import pytest

from tests.memory.shapes import DEEPSEEK, GEMMA_2, LLAMA
from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([], r"must be an object, not \[\]"),
        ({}, "num_hidden_layers .or n_layer, .* is missing: a whole number from 1 to 1,024"),
        ({**LLAMA, "num_hidden_layers": 0}, "num_hidden_layers must be .* from 1 to 1,024, not 0"),
        ({**LLAMA, "num_attention_heads": "32"}, "num_attention_heads must be .*, not '32'"),
        ({**LLAMA, "num_key_value_heads": 64}, "num_key_value_heads must be .* 1 to 32, not 64"),
        ({**LLAMA, "num_key_value_heads": 5}, r"\(5\) must divide the 32 attention heads"),
        ({**LLAMA, "hidden_size": 4095}, "head_dim is missing, and the width 4,095"),
        ({**LLAMA, "head_dim": -1}, "head_dim must be .* not -1"),
        ({**LLAMA, "head_dim": True}, "head_dim must be .* not True"),
        ({**LLAMA, "model_type": 7}, "model_type must be text, not 7"),
        ({**LLAMA, "head_dim": 64, "kv_channels": 128}, "head_dim and kv_channels contradict"),
        (
            {**GEMMA_2, "model_type": "cohere2", "order_of_interleaved_layers": "x"},
            "order_of_interleaved_layers must be 'local_attn_first'",
        ),
        ({**LLAMA, "sliding_window": 4096}, "sliding_window is 4096, and which layers"),
        ({**LLAMA, "layer_types": ["full_attention"]}, "one item per layer, 32 in all, not 1"),
        ({**LLAMA, "layer_types": ["x"] * 32}, r"layer_types\[0\] is 'x', which is not known"),
        ({**LLAMA, "kv_lora_rank": 512}, "^kv_lora_rank: not known for this model type"),
        ({**LLAMA, "attention_chunk_size": 8}, "^attention_chunk_size: not known"),
        ({**LLAMA, "kv_compression_ratio": 4}, "^kv_compression_ratio: not known"),
        ({**LLAMA, "kv_compression_config": {"a": 1}}, "^kv_compression_config: not known"),
        ({**LLAMA, "simplified_attention": 1}, "^simplified_attention: not known"),
        (
            {**GEMMA_2, "model_type": "gemma4_text", "per_layer_config": {"05": {"window": 3}}},
            r"per_layer_config\['05'\] must be a layer's number, with head_dim and",
        ),
        ({**LLAMA, "cross_layer_sharing": {"a": 1}}, "^cross_layer_sharing: not known"),
        ({**LLAMA, "model_type": "x", "mamba_d_state": 16}, "^mamba_d_state: not known"),
        ({**LLAMA, "model_type": "x", "is_encoder_decoder": True}, "^is_encoder_decoder is true"),
        ({**LLAMA, "model_type": "bert"}, "'bert' is an encoder"),
        ({**LLAMA, "model_type": "mllama"}, "cross attention over image tokens"),
        ({"text_config": []}, r"text_config must be an object, not \[\]"),
        ({"text_config": {**LLAMA, "head_dim": 0}}, "text_config.head_dim must be"),
        ({"text_config": {**LLAMA, "latent_cache": 1}}, "text_config.latent_cache: not known"),
        ({"text_config": LLAMA, "kv_share": 2}, "^kv_share: not known"),
        ({**GEMMA_2, "use_bidirectional_attention": True}, "makes the model an encoder"),
        ({**DEEPSEEK, "qk_rope_head_dim": None}, "qk_rope_head_dim is missing"),
        ({**LLAMA, "model_type": "falcon"}, "multi_query is missing: true or false"),
        (
            {key: value for key, value in GEMMA_2.items() if key != "sliding_window"},
            "sliding_window is missing: a whole number, or null for none",
        ),
    ],
)
def test_refusals_name_the_key(config, message):
    with pytest.raises(MemoryPlanError, match=message):
        plan(config)


def test_a_wrapper_may_speak_of_its_towers() -> None:
    wrapper = {"text_config": LLAMA, "vision_feature_layer": -1, "insert_layer_id": 6}
    assert plan(wrapper).entries == plan(LLAMA).entries


def test_keys_that_cannot_change_the_cache_are_passed_over() -> None:
    harmless = {
        "rope_scaling": {"rope_type": "yarn"},
        "quantization_config": {"kv_cache_scheme": None},
        "vision_config": {"num_hidden_layers": 3},
        "attention_bias": False,
        "attention_dropout": 0.1,
        "layer_norm_eps": 1e-5,
        "mlp_layer_types": ["dense"],
        "first_k_dense_replace": 3,
        "n_shared_experts": 1,
        "use_qk_norm": True,
        "use_cache": True,
        "shared_attention_cache": False,
        # As written in the config.json files of ChatGLM, Command R, Hunyuan, MiniMax and Qwen.
        "apply_query_key_layer_scaling": True,
        "attention_softmax_in_fp32": True,
        "use_parallel_block": True,
        "use_embedding_sharing": True,
        "moe_layer_num_skipped": 0,
        "shared_moe_mode": "sigmoid",
        "layernorm_full_attention_alpha": 3.5,
        "use_logn_attn": True,
        "use_dynamic_ntk": True,
        "pretraining_tp": 1,
        "num_nextn_predict_layers": 1,
        "foo": 3,
    }
    assert plan({**LLAMA, **harmless}) == plan(LLAMA)
