"""The shape of a model, and the one legend of dimensions used everywhere.

    B  batch            T  new tokens       S  cached tokens
    L  layers           H  query heads      G  KV heads
    D  head_dim         C  width            V  vocabulary

Says nothing of weights, training or speed. A configuration is stored as a config.json with the
key names of Hugging Face (tinyllm/config_json.py), so that other tools can open a model.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

from tinyllm.config_json import fields_of, json_of
from tinyllm.errors import ConfigError

NORM_EPS = 1e-5  # below the root of GPT-2's layer norm
_CHOICES = {
    "positions": ("learned", "rotary"),
    "activation": ("gelu", "swiglu"),
    "norm": ("layer", "rms"),
    "qkv_bias": (False, True),
    "output_bias": (False, True),
    "mlp_bias": (False, True),
    "qk_norm": (False, True),
    "tied_head": (False, True),
}


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A decoder-only transformer with pre-norm blocks, of GPT-2's family or of Llama's.

    Raises ConfigError, naming the field, when the numbers cannot make a model.
    """

    vocab_size: int = 96  # V: printable ASCII and newline
    context_length: int = 512  # no token can stand beyond it
    n_layer: int = 4  # L
    n_head: int = 4  # H
    n_kv_head: int = 4  # G: fewer than H means grouped (G = 1: multi-query) attention
    width: int = 96  # C
    head_dim: int = 0  # D; 0 stands for C / H
    hidden_width: int = 0  # of the MLP; 0 stands for 4 C
    positions: Literal["learned", "rotary"] = "learned"
    rope_theta: float = 10_000.0  # base of the rotary angles
    activation: Literal["gelu", "swiglu"] = "gelu"  # gelu: its tanh form
    norm: Literal["layer", "rms"] = "layer"
    norm_eps: float = NORM_EPS
    qkv_bias: bool = False  # of the query, key and value products
    output_bias: bool = False  # of attention's output product
    mlp_bias: bool = True
    qk_norm: bool = False  # an rms norm on each head's query and key
    tied_head: bool = False  # the head's weights are the token embedding

    def __post_init__(self) -> None:
        self._check_counts(
            "vocab_size", "context_length", "n_layer", "n_head", "n_kv_head", "width"
        )
        if not self.head_dim:
            if self.width % self.n_head:
                raise ConfigError(
                    f"width ({self.width}) must be a multiple of n_head ({self.n_head}), "
                    "as every head has width / n_head dimensions"
                )
            object.__setattr__(self, "head_dim", self.width // self.n_head)
        if not self.hidden_width:
            object.__setattr__(self, "hidden_width", 4 * self.width)
        self._check_counts("head_dim", "hidden_width")
        self._check_choices()
        if self.n_head % self.n_kv_head:
            raise ConfigError(
                f"n_kv_head ({self.n_kv_head}) must divide n_head ({self.n_head}), "
                "as every KV head serves the same number of query heads"
            )
        if (self.activation == "gelu") != (self.positions == "learned"):
            raise ConfigError(
                f"{self.positions} positions with {self.activation} are of no family that is known"
            )
        if self.qk_norm and self.positions == "learned":
            raise ConfigError("qk_norm goes with rotary positions")
        if self.positions == "rotary" and self.head_dim % 2:
            raise ConfigError(
                f"head_dim ({self.head_dim}) must be even, as rotary positions turn pairs"
            )

    def _check_counts(self, *fields: str) -> None:
        for field in fields:
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{field} must be a whole number of at least 1, not {value!r}")

    def _check_choices(self) -> None:
        for field, choices in _CHOICES.items():
            if getattr(self, field) not in choices:
                wanted = " or ".join(map(repr, choices))
                raise ConfigError(f"{field} must be {wanted}, not {getattr(self, field)!r}")
        for field in ("norm_eps", "rope_theta"):
            value = getattr(self, field)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e9:
                raise ConfigError(f"{field} must be a number above 0, not {value!r}")

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every weight by its name in Hugging Face's files of this family.

        GPT-2's products are stored as (in, out), Llama's as (out, in); tables are (V, C).
        """
        return _gpt2_shapes(self) if self.positions == "learned" else _llama_shapes(self)

    @property
    def n_parameters(self) -> int:
        """Number of trained parameters, embeddings and head included."""
        return sum(prod(shape) for shape in self.weight_shapes.values())

    def to_json(self) -> dict[str, Any]:
        """The contents of config.json."""
        return json_of(asdict(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ModelConfig":
        """Read the contents of a config.json; ConfigError names a missing or wrong key."""
        fields = fields_of(data)
        return cls(**{"n_kv_head": fields["n_head"]} | fields)

    @classmethod
    def load(cls, path: Path) -> "ModelConfig":
        """Read a config.json file."""
        try:
            return cls.from_json(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"cannot read {path}: {error}") from error


def _gpt2_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    width, hidden = config.width, config.hidden_width
    q_width = config.n_head * config.head_dim
    qkv_width = q_width + 2 * config.n_kv_head * config.head_dim
    block = (
        _norm("ln_1", config)
        | {"attn.c_attn.weight": (width, qkv_width)}  # Q, K and V side by side
        | _bias("attn.c_attn", qkv_width, config.qkv_bias)
        | {"attn.c_proj.weight": (q_width, width)}
        | _bias("attn.c_proj", width, config.output_bias)
        | _norm("ln_2", config)
        | {"mlp.c_fc.weight": (width, hidden)}
        | _bias("mlp.c_fc", hidden, config.mlp_bias)
        | {"mlp.c_proj.weight": (hidden, width)}
        | _bias("mlp.c_proj", width, config.mlp_bias)
    )
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (config.vocab_size, width),
        "wpe.weight": (config.context_length, width),
    }
    shapes |= _of_all_layers("h", block, config)
    shapes |= _norm("ln_f", config)
    return shapes | _head(config)


def _llama_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    width, hidden, head_dim = config.width, config.hidden_width, config.head_dim
    kv_width = config.n_kv_head * head_dim
    block = _norm("input_layernorm", config)
    for name, n_out in (("q", config.n_head * head_dim), ("k", kv_width), ("v", kv_width)):
        block[f"self_attn.{name}_proj.weight"] = (n_out, width)
        block |= _bias(f"self_attn.{name}_proj", n_out, config.qkv_bias)
    if config.qk_norm:
        block |= {"self_attn.q_norm.weight": (head_dim,), "self_attn.k_norm.weight": (head_dim,)}
    block["self_attn.o_proj.weight"] = (width, config.n_head * head_dim)
    block |= _bias("self_attn.o_proj", width, config.output_bias)
    block |= _norm("post_attention_layernorm", config)
    for name, n_in, n_out in (
        ("gate", width, hidden),
        ("up", width, hidden),
        ("down", hidden, width),
    ):
        block[f"mlp.{name}_proj.weight"] = (n_out, n_in)
        block |= _bias(f"mlp.{name}_proj", n_out, config.mlp_bias)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config.vocab_size, width)}
    shapes |= _of_all_layers("model.layers", block, config)
    shapes |= _norm("model.norm", config)
    return shapes | _head(config)


def _of_all_layers(
    at: str, block: Mapping[str, tuple[int, ...]], config: ModelConfig
) -> dict[str, tuple[int, ...]]:
    layers = range(config.n_layer)
    return {f"{at}.{layer}.{name}": shape for layer in layers for name, shape in block.items()}


def _norm(name: str, config: ModelConfig) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {f"{name}.weight": (config.width,)}
    return shapes | _bias(name, config.width, config.norm == "layer")


def _bias(name: str, n_out: int, there: bool) -> dict[str, tuple[int, ...]]:
    return {f"{name}.bias": (n_out,)} if there else {}


def _head(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    if config.tied_head:
        return {}
    return {"lm_head.weight": (config.vocab_size, config.width)}


PRESETS = {
    "target": ModelConfig(),
    "target-kv2": ModelConfig(n_kv_head=2),
    "target-kv1": ModelConfig(n_kv_head=1),
    "base": ModelConfig(n_layer=6, n_kv_head=2, width=256),
    "base-draft": ModelConfig(n_layer=2, n_kv_head=2, width=128),
    "draft": ModelConfig(n_layer=1, n_head=2, n_kv_head=2, width=48),
}
