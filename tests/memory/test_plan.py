"""Reading config.json: one public model for each way of writing a cache, and what is refused.

Figures are bytes per token in 16 bits (or the constant of a state) from the shapes in the models'
published config.json files.
"""

import pytest

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import CacheTypes, plan

BF16 = CacheTypes.named("bfloat16")
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
GEMMA_2 = {**LLAMA, "model_type": "gemma2", "head_dim": 256, "sliding_window": 4096}
DEEPSEEK = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
}


def slope(config, tokens=2**30):
    return plan(config).bytes_per_token(tokens, BF16)


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


def test_encoder_decoder_has_cross_attention_that_does_not_grow() -> None:
    t5 = {"model_type": "t5", "num_layers": 24, "num_heads": 16, "d_kv": 64, "n_positions": 512}
    model = plan({**t5, "is_encoder_decoder": True})
    per_token = 24 * 16 * 64 * 4
    assert model.bytes(0) == 512 * per_token
    assert model.bytes(100) == 612 * per_token
    assert model.with_encoder_tokens(10).bytes(100) == 110 * per_token


def test_what_is_assumed_is_said() -> None:
    assert plan(LLAMA).notes == ()
    assert "'brand_new' is unknown" in plan({**LLAMA, "model_type": "brand_new"}).notes[0]
    nested = plan({"text_config": {**GEMMA_2, "model_type": "gemma3_text", "head_dim": 128}})
    assert nested.notes == ()
    short = {key: value for key, value in GEMMA_2.items() if key != "head_dim"}
    note = plan({"text_config": {**short, "model_type": "gemma3_text"}}).notes[0]
    assert note.startswith("text_config.head_dim is not in the file: 256, the default of")


def test_entries_say_their_layers_and_rule() -> None:
    entry = plan({**GEMMA_2, "num_hidden_layers": 4}).entries[0]
    assert (entry.kind, entry.count, entry.layers) == ("window", 2, (0, 2))
    assert entry.rule == (
        "8 KV heads (num_key_value_heads), head_dim 256; SF repeated (the pattern of gemma2)"
    )


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
        ({**LLAMA, "model_type": "x", "is_encoder_decoder": True}, "^is_encoder_decoder: not"),
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


def test_layers_by_hand() -> None:
    rows = [
        {"kind": "full", "count": 12, "heads": 8, "head_dim": 64},
        {"kind": "window", "count": 12, "heads": 8, "head_dim": 64, "limit": 128},
        {"kind": "state", "count": 2, "recurrent_elements": 1000, "recurrent_bytes": 4},
        {"kind": "latent", "count": 1, "kv_lora_rank": 512, "qk_rope_head_dim": 64},
    ]
    assert plan({"layer_plan": rows}).bytes(1000) == (12_000 + 12 * 128) * 2048 + 8000 + 1_152_000


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (7, r"layer_plan\[0\] must be an object"),
        ({"kind": "full", "count": 1}, r"layer_plan\[0\].heads is missing"),
        ({"kind": "round", "count": 1}, r"layer_plan\[0\].kind must be one of full, window"),
        (
            {"kind": "full", "count": 1, "heads": 1, "head_dim": 1, "limit": 5},
            r"layer_plan\[0\].limit is not a key of kind 'full'",
        ),
    ],
)
def test_a_wrong_layer_plan_is_refused(row, message):
    with pytest.raises(MemoryPlanError, match=message):
        plan({"layer_plan": [row]})
