"""config.json of the families that the engine runs, as fields of a ModelConfig, and back.

Key names are Hugging Face's, as transformers writes them for gpt2, llama, mistral, qwen2 and qwen3
(and so SmolLM2, which is a llama). What a file says beyond these either changes nothing in a
forward pass, or is checked here and refused by its name.
"""

from collections.abc import Mapping
from typing import Any

from tinyllm.errors import ConfigError

# Our field -> the key in config.json. Keys in _OPTIONAL may be missing.
_GPT2_KEYS = {
    "vocab_size": "vocab_size",
    "context_length": "n_positions",
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_kv_head": "n_kv_head",
    "width": "n_embd",
    "hidden_width": "n_inner",
    "norm_eps": "layer_norm_epsilon",
}
_LLAMA_KEYS = {
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_kv_head": "num_key_value_heads",
    "width": "hidden_size",
    "head_dim": "head_dim",
    "hidden_width": "intermediate_size",
    "norm_eps": "rms_norm_eps",
}
_OPTIONAL = {"n_kv_head", "head_dim", "norm_eps"}
_TIED = "tie_word_embeddings"
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3")
# What else may stand in a file, and all that it may say there.
_GPT2_FACTS: dict[str, tuple[object, ...]] = {
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
}
_LLAMA_FACTS: dict[str, tuple[object, ...]] = {
    "hidden_act": ("silu",),
    "partial_rotary_factor": (1, 1.0),
    "rope_scaling": (None,),
    "pretraining_tp": (1,),
}
_GPT2_EPS, _LLAMA_EPS, _THETA = 1e-5, 1e-6, 10_000.0  # where a file does not say


def fields_of(data: object) -> dict[str, Any]:
    """The fields of the ModelConfig that a config.json describes; ConfigError names a bad key."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"config.json must hold an object, not {type(data).__name__}")
    family = data.get("model_type", "gpt2")
    if family not in FAMILIES:
        raise ConfigError(
            f"config.json: model_type must be {', '.join(FAMILIES[:-1])} or {FAMILIES[-1]}, "
            f"not {family!r}"
        )
    return _from_gpt2(data) if family == "gpt2" else _from_llama(data, family)


def _from_gpt2(data: Mapping[str, Any]) -> dict[str, Any]:
    _check(data, _GPT2_FACTS)
    fields = _numbers(data, _GPT2_KEYS, _OPTIONAL | {"hidden_width"})
    # Ours alone write n_kv_head, and have no biases in attention unless they say so.
    biased = _flag(data, "attention_bias", "n_kv_head" not in data)
    return (
        {"norm_eps": _GPT2_EPS}
        | fields
        | {
            "qkv_bias": biased,
            "output_bias": biased,
            "mlp_bias": True,
            "tied_head": _flag(data, _TIED, True),
        }
    )


def _from_llama(data: Mapping[str, Any], family: str) -> dict[str, Any]:
    _check(data, _LLAMA_FACTS)
    fields = {"norm_eps": _LLAMA_EPS} | _numbers(data, _LLAMA_KEYS, _OPTIONAL)
    biased = _flag(data, "attention_bias", False)
    if family == "mistral" or data.get("use_sliding_window"):
        # Up to the window, attention in a window is plain attention.
        window = data.get("sliding_window")
        if isinstance(window, int) and isinstance(fields["context_length"], int):
            fields["context_length"] = min(fields["context_length"], window)
    return fields | {
        "positions": "rotary",
        "rope_theta": _theta(data),
        "activation": "swiglu",
        "norm": "rms",
        "qkv_bias": biased or family == "qwen2",
        "output_bias": biased,
        "mlp_bias": _flag(data, "mlp_bias", False),
        "qk_norm": family == "qwen3",
        "tied_head": _flag(data, _TIED, False),
    }


def _theta(data: Mapping[str, Any]) -> float:
    """The base of the rotary angles: a key of its own, or one in newer files' rope_parameters."""
    nested = data.get("rope_parameters") or {}
    if not isinstance(nested, Mapping) or nested.get("rope_type", "default") != "default":
        raise ConfigError(
            f"config.json: rope_parameters must have the rope_type 'default', not {nested!r}"
        )
    theta = data.get("rope_theta", nested.get("rope_theta", _THETA))
    if not isinstance(theta, int | float) or isinstance(theta, bool):
        raise ConfigError(f"config.json: rope_theta must be a number, not {theta!r}")
    return float(theta)


def _numbers(
    data: Mapping[str, Any], keys: Mapping[str, str], optional: set[str]
) -> dict[str, Any]:
    """The keys that are there, by field; null is as good as missing where a key may be."""
    missing = [key for field, key in keys.items() if key not in data and field not in optional]
    if missing:
        raise ConfigError(f"config.json lacks {', '.join(missing)}")
    return {
        field: data[key]
        for field, key in keys.items()
        if key in data and not (field in optional and data[key] is None)
    }


def _flag(data: Mapping[str, Any], key: str, default: bool) -> bool:
    value = data.get(key, default)
    if not isinstance(value, bool):
        raise ConfigError(f"config.json: {key} must be true or false, not {value!r}")
    return value


def _check(data: Mapping[str, Any], facts: Mapping[str, tuple[object, ...]]) -> None:
    for key, allowed in facts.items():
        if data.get(key, allowed[0]) not in allowed:
            raise ConfigError(f"config.json: {key} must be {allowed[0]!r}, not {data[key]!r}")


def json_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of the config.json that fields_of() reads back; ConfigError for a mixture
    that no family has a name for."""
    data = _to_gpt2(fields) if fields["positions"] == "learned" else _to_llama(fields)
    read = {"rope_theta": fields["rope_theta"]} | fields_of(data)
    strange = [name for name, value in read.items() if fields[name] != value]
    if strange:
        raise ConfigError(f"no family of models has {strange[0]} {fields[strange[0]]!r} here")
    return data


def _to_gpt2(fields: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
    }
    data |= {key: fields[field] for field, key in _GPT2_KEYS.items()}
    data[_TIED] = fields["tied_head"]
    if fields["hidden_width"] == 4 * fields["width"]:
        del data["n_inner"]
    if fields["qkv_bias"]:
        data["attention_bias"] = True
    return data


def _to_llama(fields: Mapping[str, Any]) -> dict[str, Any]:
    if fields["qk_norm"]:
        family, name = "qwen3", "Qwen3ForCausalLM"
    elif fields["qkv_bias"] and not fields["output_bias"]:
        family, name = "qwen2", "Qwen2ForCausalLM"
    else:
        family, name = "llama", "LlamaForCausalLM"
    data: dict[str, Any] = {"architectures": [name], "model_type": family, "hidden_act": "silu"}
    data |= {key: fields[field] for field, key in _LLAMA_KEYS.items()}
    data[_TIED] = fields["tied_head"]
    data["rope_theta"] = fields["rope_theta"]
    data["attention_bias"] = fields["output_bias"]
    data["mlp_bias"] = fields["mlp_bias"]
    return data
