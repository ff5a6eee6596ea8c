"""The shape of a model, and the one legend of dimensions used everywhere.

    B  batch            T  new tokens       S  cached tokens
    L  layers           H  query heads      G  KV heads
    D  head_dim         C  width            V  vocabulary

Says nothing of weights, training or speed. A configuration is stored as a config.json with the
key names of Hugging Face's GPT-2, so that other tools can open a model with G = H.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyllm.errors import ConfigError
from tinyllm.tokenizer import CharTokenizer

# Our field -> the key in config.json.
_JSON_KEYS = {
    "vocab_size": "vocab_size",
    "context_length": "n_positions",
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_kv_head": "n_kv_head",
    "width": "n_embd",
}
NORM_EPS = 1e-5  # below the root of layer norm
# What else a config.json may say, and the one thing it may say there.
_JSON_FACTS = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "tie_word_embeddings": False,
    "layer_norm_epsilon": NORM_EPS,
}


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A decoder-only transformer: pre-norm, learned positions, tanh-GELU, untied head.

    Raises ConfigError, naming the field, when the numbers cannot make a model.
    """

    vocab_size: int = 96  # V: printable ASCII and newline
    context_length: int = 512  # rows of the position table; no token can stand beyond it
    n_layer: int = 4  # L
    n_head: int = 4  # H
    n_kv_head: int = 4  # G: fewer than H means grouped (G = 1: multi-query) attention
    width: int = 96  # C = H * D

    def __post_init__(self) -> None:
        for field in _JSON_KEYS:
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{field} must be a whole number of at least 1, not {value!r}")
        if self.width % self.n_head:
            raise ConfigError(
                f"width ({self.width}) must be a multiple of n_head ({self.n_head}), "
                "as every head has width / n_head dimensions"
            )
        if self.n_head % self.n_kv_head:
            raise ConfigError(
                f"n_kv_head ({self.n_kv_head}) must divide n_head ({self.n_head}), "
                "as every KV head serves the same number of query heads"
            )

    @property
    def head_dim(self) -> int:
        """D, the dimensions of one head."""
        return self.width // self.n_head

    @property
    def hidden_width(self) -> int:
        """Width of the MLP's hidden layer, 4 C."""
        return 4 * self.width

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every weight by its GPT-2 name; products are (in, out), the head is (V, C)."""
        width, kv_width = self.width, self.n_kv_head * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {
            "wte.weight": (self.vocab_size, width),
            "wpe.weight": (self.context_length, width),
        }
        for layer in range(self.n_layer):
            block = {
                "ln_1.weight": (width,),
                "ln_1.bias": (width,),
                "attn.c_attn.weight": (width, width + 2 * kv_width),  # Q, K and V side by side
                "attn.c_proj.weight": (width, width),
                "ln_2.weight": (width,),
                "ln_2.bias": (width,),
                "mlp.c_fc.weight": (width, self.hidden_width),
                "mlp.c_fc.bias": (self.hidden_width,),
                "mlp.c_proj.weight": (self.hidden_width, width),
                "mlp.c_proj.bias": (width,),
            }
            shapes.update({f"h.{layer}.{name}": shape for name, shape in block.items()})
        shapes["ln_f.weight"] = (width,)
        shapes["ln_f.bias"] = (width,)
        shapes["lm_head.weight"] = (self.vocab_size, width)
        return shapes

    @property
    def n_parameters(self) -> int:
        """Number of trained parameters, embeddings and head included."""
        total = 0
        for shape in self.weight_shapes.values():
            size = 1
            for extent in shape:
                size *= extent
            total += size
        return total

    def to_json(self) -> dict[str, Any]:
        """The contents of config.json."""
        numbers = {key: getattr(self, field) for field, key in _JSON_KEYS.items()}
        return {"architectures": ["GPT2LMHeadModel"]} | _JSON_FACTS | numbers

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ModelConfig":
        """Read the contents of a config.json; ConfigError names a missing or wrong key."""
        if not isinstance(data, Mapping):
            raise ConfigError(f"config.json must hold an object, not {type(data).__name__}")
        missing = [key for key in _JSON_KEYS.values() if key not in data and key != "n_kv_head"]
        if missing:
            raise ConfigError(f"config.json lacks {', '.join(missing)}")
        for key, value in _JSON_FACTS.items():
            if data.get(key, value) != value:
                raise ConfigError(f"config.json: {key} must be {value!r}, not {data[key]!r}")
        values = {field: data[key] for field, key in _JSON_KEYS.items() if key in data}
        values.setdefault("n_kv_head", data["n_head"])
        if values["vocab_size"] != CharTokenizer.vocab_size:
            raise ConfigError(
                f"config.json: vocab_size must be {CharTokenizer.vocab_size}, the symbols of "
                f"tinyllm's tokenizer, not {values['vocab_size']!r}"
            )
        return cls(**values)

    @classmethod
    def load(cls, path: Path) -> "ModelConfig":
        """Read a config.json file."""
        try:
            return cls.from_json(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"cannot read {path}: {error}") from error


PRESETS = {
    "target": ModelConfig(),
    "target-kv2": ModelConfig(n_kv_head=2),
    "target-kv1": ModelConfig(n_kv_head=1),
    "draft": ModelConfig(n_layer=1, n_head=2, n_kv_head=2, width=48),
}
