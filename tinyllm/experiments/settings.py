"""The settings of one run: what an address of the app carries, and nothing else.

The fields have the names of the URL parameters. Settings that exist are valid; every
SettingError names the field, the value and the accepted range. They load no model. A page that
decodes no text has settings of its own, beside its experiment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

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
class Settings:
    """Base of a page's settings: numbers within their range, and choices from their list.

    A field's type is that of its default; what no range or list can say is for check().
    """

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    def __post_init__(self) -> None:
        for field in (*self.ranges, *self.choices):
            self.check_value(field, getattr(self, field))
        self.check()

    def check(self) -> None:
        """Raise SettingError for fields that do not go together."""

    @classmethod
    def check_value(cls, field: str, value: Any) -> None:
        """Raise SettingError for a value outside its field's range or list."""
        if field in cls.choices:
            if value not in cls.choices[field]:
                accepted = ", ".join(str(choice) for choice in cls.choices[field])
                raise SettingError(f"{field} must be one of {accepted}, not {value!r}")
            return
        low, high = cls.ranges[field]
        whole = isinstance(cls.default(field), int)
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise SettingError(f"{field} must be a number from {low} to {high}, not {value!r}")
        if not low <= value <= high:  # also refuses nan
            raise SettingError(f"{field} must lie between {low} and {high}, not at {value}")

    @classmethod
    def default(cls, field: str) -> Any:
        """A field's default."""
        return cls.__dataclass_fields__[field].default

    def with_(self, **changes: Any) -> Self:
        """The same with some settings changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class RunConfig(Settings):
    """One run: target, drafter, sampling, cache, prompt and length."""

    ranges = RANGES
    choices = CHOICES

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

    def check(self) -> None:
        """The prompt is text the model knows, and with the new tokens fits its positions."""
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


def problem_of(field: str, given: Sequence[str], kind: type[Settings] = RunConfig) -> str | None:
    """What is wrong with a field's texts in an address, in a sentence; None when nothing.

    The interface drops what is wrong and shows the sentence instead of staying silent. How a
    number or a choice goes together with other fields is not looked at.
    """
    if len(given) > 1:
        return f"{field} is given {len(given)} times: give it once"
    value: Any = given[0]
    if field in kind.ranges:
        low, high = kind.ranges[field]
        try:
            value = float(value)
        except ValueError:
            return f"{field} must be a number from {low} to {high}, not {value!r}"
        if isinstance(kind.default(field), int) and value.is_integer():
            value = int(value)
    elif field in kind.choices:
        value = {str(choice): choice for choice in kind.choices[field]}.get(value, value)
    try:
        if field in kind.ranges or field in kind.choices:
            kind.check_value(field, value)
        else:
            kind(**{field: value})
    except TinyllmError as error:
        return str(error)
    return None
