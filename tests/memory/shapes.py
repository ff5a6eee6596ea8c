"""Shapes of public models that several tests start from, and what a token costs."""

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
    """Bytes that one more token takes in 16 bits, far behind every window."""
    return plan(config).bytes_per_token(tokens, BF16)
