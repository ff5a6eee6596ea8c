"""Shapes that a nested config.json leaves out because they equal the defaults of its class.

transformers writes a text_config as the difference from its class, so an absent key there means the
class default (Gemma 3 4B, LLaVA 1.5); at the top level every key is written. Values: transformers
5.24. Each one used is said in the plan's notes.
"""

_SHAPE = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "sliding_window",
)
_ROWS: dict[str, tuple[int | None, ...]] = {
    "gemma2": (26, 2304, 8, 4, 256, 4096),
    "gemma3_text": (26, 2304, 8, 4, 256, 4096),
    "gemma3n_text": (35, 2048, 8, 2, 256, 512),
    "gemma4_text": (30, 2304, 8, 4, 256, 512),
    "gemma": (28, 3072, 16, 16, 256),
    "llama": (32, 4096, 32),
    "llama4_text": (48, 5120, 40, 8, 128),
    "mistral": (32, 4096, 32, 8, None, 4096),
    "ministral3": (34, 4096, 32, 8, 128),
    "mixtral": (32, 4096, 32, 8),
    "phi3": (32, 3072, 32),
    "qwen2": (32, 4096, 32, 32),
    "qwen2_vl_text": (80, 8192, 64, 8),
    "qwen2_5_vl_text": (80, 8192, 64, 8),
    "qwen2_5_omni_text": (28, 3584, 28, 4),
    "qwen3": (32, 4096, 32, 32, 128),
    "qwen3_moe": (24, 2048, 32, 4),
    "qwen3_vl_text": (32, 4096, 32, 32, 128),
    "qwen3_vl_moe_text": (24, 2048, 16, 16),
    "qwen3_5_text": (32, 4096, 16, 4, 256),
    "qwen3_5_moe_text": (40, 2048, 16, 2, 256),
    "granite": (32, 4096, 32),
    "glm4v_text": (40, 4096, 32, 2),
    "glm4v_moe_text": (46, 4096, 96, 8),
    "cohere2": (40, 8192, 64, None, None, 4096),
    "aria_text": (32, 4096, 32),
}
_OTHERS = {
    "gemma3n_text": {"num_kv_shared_layers": 15},
    "llama4_text": {"attention_chunk_size": 8192},
    "qwen3_5_text": {
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
    },
}
_OTHERS["qwen3_5_moe_text"] = _OTHERS["qwen3_5_text"]


def class_defaults(family: str) -> dict[str, int]:
    """The class's shape by key; empty for families that are not known to be nested."""
    row = zip(_SHAPE, _ROWS.get(family, ()), strict=False)
    shape = {key: value for key, value in row if value is not None}
    return shape | _OTHERS.get(family, {})
