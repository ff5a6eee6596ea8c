"""Which keys of a config.json cannot change the cache, and which unread ones might.

A key that no reader looked at is refused when a word of its name speaks of the cache, unless it is
listed as harmless or is switched off (null, false, empty). Others are passed over: most of a
config.json is about norms, experts and tokens.
"""

import re

from tinyllm.memory.fields import Fields


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of the cache itself.
_CACHE = _words("cache cached caches kv latent mamba mla sliding ssm swa")
# Words that make an unread key suspicious whatever stands beside them.
_STRONG = _words("""
    blocksparse cache cached caches chunk chunked chunks cla compress compressed compression
    compressor delta evict eviction gdn gqa hybrid indexer kda key keys kv latent latents lru mamba
    mamba2 mla mqa recurrence recurrent retention reuse rnn sink sinks sliding ssm state states swa
    value values window windows
""")
# Words that do so unless the rest of the name is about something else.
_WEAK = _words("""
    attention attn block blocks conv cross decoder depth dim dims encoder global group groups head
    heads index interval layer layers linear local loop loops lora memory pattern period rank share
    shared sharing sparse sparsity stride types
""")
_ELSEWHERE = re.compile(
    r"norm|dropout|drop_|bias|rope|rotary|yarn|token|eps$|_std|router|routed|expert|moe|mlp|ffn|"
    r"feed_forward|init|loss|vocab|mtp|nextn|scal|softcap|gating|multiplier|activation|_act$|dtype|"
    r"vision|image|video|audio|visual|projector|pixel|patch|class|label|embed|temperature|"
    r"intermediate|summary|alibi|position|flash|_impl|gate|prun|quant|first_k_dense|dense_layers|"
    r"tie_|return|output|use_mem|upcast|reorder|query_pre|is_decoder|tp_plan|pretraining"
)
# What a strong word may stand beside without harm.
_NUMERICS = re.compile(r"rope|rotary|norm|dropout|bias|theta|init_std|softcap")
# Keys of a vision or audio tower, whose words mean something else there.
_TOWER = re.compile(r"(vision|image|video|audio|visual|mm|vit|speech|spatial|temporal)_")
# Whole objects about something else.
_OBJECT = re.compile(
    r"^(vision|audio|image|video|projector|quantization|rope|generation|code2wav|talker|token2wav|"
    r"speech|visual|peft|compression)_?\w*(config|scaling|parameters)$|"
    r"^(auto_map|id2label|label2id|task_specific_params|pruned_heads|ffn_config|init_config)$"
)
_HARMLESS = (
    # Feed-forward layers and experts.
    _words("""
        activation_sparsity_pattern block_auto_adjust_ff_dim block_dim block_ff_dim
        block_ffn_dim_multiplier block_mlp_init_scale block_multiple_of block_norm_eps block_out_dim
        block_use_swiglu block_use_xavier_init conv_dim_out decoder_ffn_dim
        decoder_layerdrop decoder_sparse_step embd_layer
        encoder_ffn_dim encoder_layerdrop expert_layer_offset expert_layer_period feed_forward_proj
        ffn_dim_divisor ffn_multipliers hidden_size_per_layer_input interleave_moe_layer_step
        laurel_rank moe_num_shared_experts moe_shared_expert_intermediate_size
        moe_shared_expert_overlap n_group n_shared_experts num_experts_shared num_shared_expert
        num_shared_experts qkv_multipliers share_expert_dim share_expert_dims
        shared_expert_combination_strategy shared_expert_gate shared_expert_intermediate_size
        shared_intermediate_size topk_group use_double_wide_mlp vocab_size_per_layer_input
    """)
    # Kernels, numerics, gates and residual streams.
    | _words("""
        add_full_attention_sink_bias add_swa_attention_sink_bias apply_query_key_layer_scaling
        attention_softmax_in_fp32 attention_value_scale block_group_size block_type
        compression_ratio dim_model_base max_attn_value attn_logit_softcapping attn_output_gate
        attn_pdrop cache_implementation chunk_size_feed_forward context_window_size conv_bias
        conv_use_xavier_init dual_chunk_attention_config full_attn_alpha_factor
        full_attn_beta_factor hidden_mamba_act key_multiplier linear_a_log_max linear_a_log_min
        linear_allow_neg_eigval linear_attn_alpha_factor linear_attn_beta_factor
        linear_dt_init_floor linear_dt_max linear_dt_min lm_head mamba_conv_bias mamba_dt_init_floor
        mamba_dt_limit mamba_dt_max mamba_dt_min mamba_hidden_act mamba_inner_layernorms
        mamba_norm_before_gate mamba_proj_bias mamba_rms_norm pad_key_length parallel_attn
        pre_allocate_kv_cache prefill_chunk_size relative_attention_max_distance
        relative_attention_num_buckets residual_in_fp32 rm_head scale_attention_softmax_in_fp32
        seconds_per_chunk share_encoder_decoder_embeddings share_input_output_layers share_q_dim
        ssm_in_multiplier ssm_multipliers ssm_out_multiplier use_cache use_logn_attn
        use_mamba_kernels use_mambapy use_parallel_block use_weighted_layer_sum
    """)
    # Layers that are not of the model proper, and shared weights that are not shared caches.
    | _words("""
        adapter_rank mtp_hybrid_override_pattern mtp_layers_block_type num_gqa_groups
        num_hash_layers num_mem_blocks use_mem_rope use_shared_attention_adapter
    """)
)


def suspicious_keys(fields: Fields, wrapper: bool = False) -> list[str]:
    """Unread keys that might change the cache, in the order of the file.

    A wrapper's own keys are about its towers, so only words of the cache itself count there.
    """
    matters = _names_the_cache if wrapper else _might_matter
    return [
        key
        for key, value in fields.values.items()
        if key not in fields.read and not _is_off(value) and matters(str(key))
    ]


def _is_off(value: object) -> bool:
    """Null, false and empty switch nothing on."""
    return value is None or value is False or value == [] or value == {} or value == ""


def _name_and_words(key: str) -> tuple[str, set[str]]:
    name = re.sub(r"([a-z])([A-Z])", r"\1_\2", key).lower()
    return name, set(re.split(r"[^a-z0-9]+", name))


def _names_the_cache(key: str) -> bool:
    """Whether a key speaks of the cache and of nothing else."""
    name, words = _name_and_words(key)
    return key not in _HARMLESS and bool(words & _CACHE) and not _TOWER.match(name)


def _might_matter(key: str) -> bool:
    """Whether the words of a key speak of the cache."""
    name, words = _name_and_words(key)
    if key in _HARMLESS or _OBJECT.search(name) or _TOWER.match(name):
        return False
    if words & _STRONG:
        return not _NUMERICS.search(name)
    return bool(words & _WEAK) and not _ELSEWHERE.search(name)
