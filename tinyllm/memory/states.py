"""The constant memory of layers that read a sequence through a state instead of a cache.

One function per mixer, named after it. A recurrent state is 32-bit where the config says so (or the
mixer does), else 16-bit like the model; vLLM 0.32 does the same (mamba_utils.py), and llama.cpp
keeps all of it in 32 bits.
"""

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import MOST_HEADS, Fields, shown
from tinyllm.memory.layers import State
from tinyllm.memory.shape import HEAD_KEYS, WIDTH_KEYS, read_key_dim

_CACHE_DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
_MOST_TAPS = 1_024


def _recurrent_bytes(fields: Fields) -> int:
    """Bytes of one element of the recurrent state."""
    for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
        if fields.has(key):
            name = fields.text(key)
            if name in _CACHE_DTYPES:
                return _CACHE_DTYPES[name]
            known = ", ".join(_CACHE_DTYPES)
            raise MemoryPlanError(f"{fields.name(key)} must be one of {known}, not {shown(name)}")
    return 2


def gated_delta_net(fields: Fields) -> State:
    """Qwen3-Next: (value heads, key dim, value dim), and a convolution over q, k and v."""
    keys = fields.whole("linear_num_key_heads", high=MOST_HEADS)
    values = fields.whole("linear_num_value_heads", high=MOST_HEADS)
    key_dim, value_dim = fields.whole("linear_key_head_dim"), fields.whole("linear_value_head_dim")
    taps = fields.whole("linear_conv_kernel_dim", high=_MOST_TAPS)
    width = 2 * keys * key_dim + values * value_dim
    recurrent = values * key_dim * value_dim
    return State("Gated DeltaNet", taps - 1, width, recurrent, _recurrent_bytes(fields))


def kimi_delta_attention(fields: Fields) -> State:
    """Kimi Linear: one key x value matrix a head, kept in 32 bits, and three convolutions."""
    heads = fields.whole("linear_num_heads", "num_heads", high=MOST_HEADS)
    dim = fields.whole("linear_head_dim", "head_dim")
    taps = fields.whole("linear_conv_kernel_dim", "short_conv_kernel_size", high=_MOST_TAPS)
    return State("KDA", taps - 1, 3 * heads * dim, heads * dim * dim, 4)


def mamba_2(fields: Fields) -> State:
    """Mamba-2: (heads, head dim, state size), and a convolution over x, B and C."""
    state = fields.whole("mamba_d_state", "ssm_state_size", "state_size")
    groups = fields.whole("mamba_n_groups", "mamba_ngroups", "n_groups", high=MOST_HEADS)
    heads = fields.whole(
        "mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads", high=MOST_HEADS
    )
    taps = fields.whole("mamba_d_conv", "conv_kernel", high=_MOST_TAPS)
    fields.ignore("chunk_size", "mamba_chunk_size")
    inner = _mamba_2_width(fields, heads)
    recurrent = inner * state
    size = _recurrent_bytes(fields)
    return State("Mamba-2", taps - 1, inner, recurrent, size, groups, 2 * state)


def _mamba_2_width(fields: Fields, heads: int) -> int:
    """Channels of x: heads x head dim, or expand x width when the head dim is "auto"."""
    expansion = ("mamba_expand", "expand")
    fields.ignore("mamba_d_ssm")
    keys = ("mamba_d_head", "mamba_head_dim", "mamba_headdim")
    for key in keys if fields.has("num_attention_heads") else (*keys, "head_dim"):
        if fields.has(key) and fields.get(key) != "auto":
            fields.ignore(*expansion)
            return heads * fields.whole(key)
    if fields.has("mamba_d_ssm"):
        return fields.whole("mamba_d_ssm")
    return fields.whole(*expansion) * fields.whole(*WIDTH_KEYS)


def mamba_1(fields: Fields) -> State:
    """Mamba-1: (channels, state size), and a convolution over the channels."""
    state = fields.whole("mamba_d_state", "state_size")
    taps = fields.whole("mamba_d_conv", "conv_kernel", high=_MOST_TAPS)
    inner = fields.whole("mamba_expand", "expand") * fields.whole(*WIDTH_KEYS)
    fields.ignore("mamba_dt_rank", "time_step_rank", "intermediate_size")
    return State("Mamba-1", taps - 1, inner, inner * state, _recurrent_bytes(fields))


def short_convolution(fields: Fields) -> State:
    """LFM2: the last inputs of a gated convolution, and no recurrent state."""
    taps = fields.whole("conv_L_cache", high=_MOST_TAPS)
    width = fields.whole("conv_dim", *WIDTH_KEYS)
    fields.ignore(*WIDTH_KEYS)
    return State("short convolution", taps - 1, width, 0, 2)


def lightning_attention(fields: Fields) -> State:
    """MiniMax-Text-01: one key x value matrix a head, in the model's 16 bits."""
    heads = fields.whole(*HEAD_KEYS, high=MOST_HEADS)
    dim, _ = read_key_dim(fields, heads)
    fields.ignore("block_size")
    return State("lightning attention", 0, 0, heads * dim * dim, _recurrent_bytes(fields))


def gated_recurrence(fields: Fields) -> State:
    """RecurrentGemma: one 32-bit number a channel, and a convolution over the channels."""
    width = fields.whole("lru_width", *WIDTH_KEYS)
    taps = fields.whole("conv1d_width", high=_MOST_TAPS)
    return State("RG-LRU", taps - 1, width, width, 4)
