"""The settings of one run: what an address of the app carries, and nothing else.

The fields have the names of the URL parameters. A RunConfig that exists is valid; every
SettingError names the field, the value and the accepted range. It loads no model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tinyllm.cache import CACHE_DTYPES
from tinyllm.config import PRESETS
from tinyllm.errors import SettingError, TinyllmError
from tinyllm.speculative import DRAFTERS
from tinyllm.tokenizer import CharTokenizer

CONTEXT_LENGTH = PRESETS["target"].context_length
KV_HEADS = (4, 2, 1)
KV_DTYPES = CACHE_DTYPES
CONTEXTS = (1024, 2048, 4096, 8192)  # tokens that an attention step alone is timed on
TARGET_OF_KV_HEADS = {4: "target", 2: "target-kv2", 1: "target-kv1"}

# Field -> its lowest and highest value; controls and validation share it.
RANGES: dict[str, tuple[float, float]] = {
    "k": (1, 8),
    "temperature": (0.0, 1.5),
    "tokens": (8, 384),
    "seed": (0, 9999),
    "top_k": (0, 96),
    "top_p": (0.05, 1.0),
}
CHOICES: dict[str, tuple[Any, ...]] = {
    "kv_heads": KV_HEADS,
    "kv_dtype": KV_DTYPES,
    "drafter": DRAFTERS,
    "context": CONTEXTS,
}

PROMPTS = {
    "class": "class Node:\n    def __init__(self, value, parent=None):\n        ",
    "method": '    def close(self):\n        """Close the file."""\n        if self.',
    "loop": "for name in sorted(names):\n    if name not in seen:\n        ",
    "words": 'def parse_header(line):\n    """Parse a header line and return',
}
DEFAULT_PROMPT = PROMPTS["class"]


@dataclass(frozen=True, slots=True)
class RunConfig:
    """One run: target, drafter, sampling, cache, prompt and length."""

    k: int = 4  # proposals a round
    temperature: float = 0.7  # 0 takes the most likely token
    kv_dtype: str = "float32"
    kv_heads: int = 4  # G; picks the target trained with it
    drafter: str = "draft"
    prompt: str = DEFAULT_PROMPT
    tokens: int = 96  # new tokens to make
    seed: int = 0
    top_k: int = 0  # 0: off
    top_p: float = 1.0  # 1: off
    context: int = 4096  # cached tokens of the attention step on the KV-heads page

    def __post_init__(self) -> None:
        for field, (low, high) in RANGES.items():
            value = getattr(self, field)
            whole = isinstance(RunConfig.__dataclass_fields__[field].default, int)
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                raise SettingError(f"{field} must be a number from {low} to {high}, not {value!r}")
            if not low <= value <= high:  # also refuses nan
                raise SettingError(f"{field} must lie between {low} and {high}, not at {value}")
        for field, choices in CHOICES.items():
            if getattr(self, field) not in choices:
                accepted = ", ".join(str(choice) for choice in choices)
                raise SettingError(
                    f"{field} must be one of {accepted}, not {getattr(self, field)!r}"
                )
        self._check_prompt()

    def _check_prompt(self) -> None:
        if not self.prompt:
            raise SettingError("prompt is empty: write at least one character to continue from")
        length = len(CharTokenizer().encode(self.prompt))
        room = CONTEXT_LENGTH - self.tokens
        if length > room:
            raise SettingError(
                f"prompt has {length} characters, and with {self.tokens} new tokens only {room} "
                f"fit into the model's {CONTEXT_LENGTH} positions: remove {length - room} "
                "characters or ask for fewer tokens"
            )

    @property
    def target(self) -> str:
        """Name of the target model."""
        return TARGET_OF_KV_HEADS[self.kv_heads]

    @property
    def run_settings(self) -> dict[str, Any]:
        """The arguments that generate() and speculate() share, but for the prompt."""
        return {
            "max_new_tokens": self.tokens,
            "kv_dtype": self.kv_dtype,
            "temperature": self.temperature,
            "top_k": self.top_k or None,
            "top_p": self.top_p,
            "seed": self.seed,
        }

    def with_(self, **changes: Any) -> "RunConfig":
        """The same run with some settings changed."""
        return replace(self, **changes)


def problem_of(field: str, given: Sequence[str]) -> str | None:
    """What is wrong with a field's texts in an address, in a sentence; None when nothing.

    The interface drops what is wrong and shows the sentence instead of staying silent.
    """
    if len(given) > 1:
        return f"{field} is given {len(given)} times: give it once"
    value: Any = given[0]
    if field in RANGES:
        low, high = RANGES[field]
        try:
            value = float(value)
        except ValueError:
            return f"{field} must be a number from {low} to {high}, not {value!r}"
        if isinstance(RunConfig.__dataclass_fields__[field].default, int) and value.is_integer():
            value = int(value)
    elif field in CHOICES:
        value = {str(choice): choice for choice in CHOICES[field]}.get(value, value)
    try:
        RunConfig(**{field: value})
    except TinyllmError as error:
        return str(error)
    return None
