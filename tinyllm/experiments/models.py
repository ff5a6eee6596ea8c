"""The models that experiments can be run on, by name, and what goes with each: one table.

Trained models that come with the checkout, and language models that the engine finds on disk. A
choice says which drafters, KV heads, prompts and lengths go with a model; it loads no weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.errors import SettingError
from tinyllm.loading import MODELS, shipped_models
from tinyllm.speculative import DRAFTERS
from tinyllm.speculative.drafters import available

DEFAULT = "target"
# Which drafters go with which trained target.
DRAFTERS_OF = {"target": DRAFTERS, "base": available("base")}
LARGE = 50_000_000  # parameters; of a larger model less is measured, as every call takes long
TARGET_OF_KV_HEADS = {4: "target", 2: "target-kv2", 1: "target-kv1"}

PROMPTS = {
    "class": "class Node:\n    def __init__(self, value, parent=None):\n        ",
    "method": '    def close(self):\n        """Close the file."""\n        if self.',
    "loop": "for name in sorted(names):\n    if name not in seen:\n        ",
    "words": 'def parse_header(line):\n    """Parse a header line and return',
}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model to choose, and what goes with it; where there are several, the first is usual."""

    name: str
    by_kv_heads: Mapping[int, str]  # G -> the stored model that was trained with it
    drafters: tuple[str, ...]
    prompts: Mapping[str, str]  # prepared ones, by a word
    context_length: int
    tokens: tuple[int, int]  # new ones: usual, and most
    characters: bool = True  # each token is one of printable ASCII, which a prompt must keep to

    @property
    def kv_heads(self) -> tuple[int, ...]:
        """The numbers of KV heads to choose from."""
        return tuple(self.by_kv_heads)

    @property
    def prompt(self) -> str:
        """The prompt to begin with."""
        return next(iter(self.prompts.values()))


@cache
def _shipped() -> dict[str, ModelChoice]:
    """The trained targets that are in the checkout."""
    found = {}
    for name, drafters in DRAFTERS_OF.items():
        if name not in {DEFAULT, *shipped_models()}:  # without the default there is no lab
            continue
        preset = PRESETS.get(name)
        config = preset or ModelConfig.load(MODELS / name / "config.json")
        found[name] = ModelChoice(
            name=name,
            by_kv_heads=TARGET_OF_KV_HEADS if name == DEFAULT else {config.n_kv_head: name},
            drafters=drafters,
            prompts=PROMPTS,
            context_length=config.context_length,
            tokens=(96, config.context_length * 3 // 4),
        )
    return found


def models() -> dict[str, ModelChoice]:
    """Every model that can be chosen here, by name; the default one first."""
    return dict(_shipped())


def chosen(name: str) -> ModelChoice:
    """A model by name; SettingError lists those there are."""
    known = models()
    if name not in known:
        raise SettingError(f"model must be one of {', '.join(known)}, not {name!r}")
    return known[name]


def is_large(config: ModelConfig) -> bool:
    """Whether a visitor would wait too long for as many measurements as of the small models."""
    return config.n_parameters > LARGE
