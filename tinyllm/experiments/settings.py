"""The settings of one run: what an address of the app carries, and nothing else.

The fields have the names of the URL parameters. Settings that exist are valid; every
SettingError names the field, the value and the accepted range. They load no model. A page that
decodes no text has settings of its own, beside its experiment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tinyllm.cache import CACHE_DTYPES
from tinyllm.errors import SettingError, TinyllmError
from tinyllm.experiments import models
from tinyllm.experiments.models import ModelChoice
from tinyllm.tokenizer import CharTokenizer

CONTEXT_LENGTH = models.chosen(models.DEFAULT).context_length
KV_HEADS = models.chosen(models.DEFAULT).kv_heads
KV_DTYPES = CACHE_DTYPES
CONTEXTS = (1024, 2048, 4096, 8192)  # tokens that an attention step alone is timed on
PROMPTS = models.PROMPTS
DEFAULT_PROMPT = PROMPTS["class"]

Ranges = Mapping[str, tuple[float, float]]  # field -> its lowest and highest value
Choices = Mapping[str, tuple[Any, ...]]
# With the default model; controls and validation share them.
RANGES: Ranges = {
    "k": (1, 8),
    "temperature": (0.0, 1.5),
    "tokens": (8, models.chosen(models.DEFAULT).tokens[1]),
    "seed": (0, 9999),
    "top_k": (0, 96),
    "top_p": (0.05, 1.0),
}
CHOICES: Choices = {
    "kv_heads": KV_HEADS,
    "kv_dtype": KV_DTYPES,
    "drafter": models.chosen(models.DEFAULT).drafters,
    "context": CONTEXTS,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Base of a page's settings: numbers within their range, and choices from their list.

    A field's type is that of its default; what no range or list can say is for check(). A field
    with a list and an empty default ("" or 0) takes the first of its list.
    """

    ranges: ClassVar[Ranges] = {}
    choices: ClassVar[Choices] = {}

    def __post_init__(self) -> None:
        model = self.chosen_model
        for field, accepted in self.choices_for(model).items():
            if not getattr(self, field):
                object.__setattr__(self, field, accepted[0])
        for field in (*self.ranges, *self.choices):
            self.check_value(field, getattr(self, field), model)
        self.check()

    def check(self) -> None:
        """Raise SettingError for fields that do not go together."""

    @property
    def chosen_model(self) -> ModelChoice:
        """What ranges and lists may depend on: the model of a `model` field, else the default."""
        return models.chosen(getattr(self, "model", models.DEFAULT))

    @classmethod
    def ranges_for(cls, model: ModelChoice) -> Ranges:
        """The ranges with a model."""
        return cls.ranges

    @classmethod
    def choices_for(cls, model: ModelChoice) -> Choices:
        """The lists with a model."""
        return cls.choices

    @classmethod
    def check_value(cls, field: str, value: Any, model: ModelChoice) -> None:
        """Raise SettingError for a value outside its field's range or list with a model."""
        choices, ranges = cls.choices_for(model), cls.ranges_for(model)
        among = "" if model.name == models.DEFAULT else f" with model {model.name}"
        if field in choices:
            if value not in choices[field]:
                accepted = ", ".join(str(choice) for choice in choices[field])
                raise SettingError(f"{field} must be one of {accepted}{among}, not {value!r}")
            return
        low, high = ranges[field]
        whole = isinstance(cls.default(field), int)
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise SettingError(f"{field} must be a number from {low} to {high}, not {value!r}")
        if not low <= value <= high:  # also refuses nan
            raise SettingError(f"{field} must lie between {low} and {high}{among}, not at {value}")

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
    kv_heads: int = 0  # G; picks the target trained with it. 0: the model's usual one
    drafter: str = ""  # "": the model's usual one
    prompt: str = DEFAULT_PROMPT
    tokens: int = 96  # new tokens to make
    seed: int = 0
    top_k: int = 0  # 0: off
    top_p: float = 1.0  # 1: off
    context: int = 4096  # cached tokens of the attention step on the KV-heads page
    model: str = models.DEFAULT

    @classmethod
    def ranges_for(cls, model: ModelChoice) -> Ranges:
        """New tokens follow the model."""
        low, _high = cls.ranges["tokens"]
        return {**cls.ranges, "tokens": (low, model.tokens[1])}

    @classmethod
    def choices_for(cls, model: ModelChoice) -> Choices:
        """KV heads and drafters follow the model."""
        return {**cls.choices, "kv_heads": model.kv_heads, "drafter": model.drafters}

    def check(self) -> None:
        """The prompt is text the model knows, and with the new tokens fits its positions.

        What a prompt of word pieces comes to is for the model's tokenizer to say, in a request.
        """
        if not self.prompt:
            raise SettingError("prompt is empty: write at least one character to continue from")
        model = self.chosen_model
        if not model.characters:
            return
        length = len(CharTokenizer().encode(self.prompt))
        room = model.context_length - self.tokens
        if length > room:
            raise SettingError(
                f"prompt has {length} characters, and with {self.tokens} new tokens only {room} "
                f"fit into the model's {model.context_length} positions: remove {length - room} "
                "characters or ask for fewer tokens"
            )

    @property
    def target(self) -> str:
        """Name of the target model, as it is stored."""
        return self.chosen_model.by_kv_heads[self.kv_heads]

    @property
    def run_settings(self) -> dict[str, Any]:
        """The arguments that generate() and speculate() share, but for prompt and stop."""
        return {
            "max_new_tokens": self.tokens,
            "kv_dtype": self.kv_dtype,
            "temperature": self.temperature,
            "top_k": self.top_k or None,
            "top_p": self.top_p,
            "seed": self.seed,
        }


def problem_of(
    field: str,
    given: Sequence[str],
    kind: type[Settings] = RunConfig,
    model: ModelChoice | None = None,
) -> str | None:
    """What is wrong with a field's texts in an address, in a sentence; None when nothing.

    The interface drops what is wrong and shows the sentence instead of staying silent. How a
    number or a choice goes together with other fields but the model is not looked at.
    """
    if len(given) > 1:
        return f"{field} is given {len(given)} times: give it once"
    model = model or models.chosen(models.DEFAULT)
    ranges, choices = kind.ranges_for(model), kind.choices_for(model)
    value: Any = given[0]
    if field in ranges:
        low, high = ranges[field]
        try:
            value = float(value)
        except ValueError:
            return f"{field} must be a number from {low} to {high}, not {value!r}"
        if isinstance(kind.default(field), int) and value.is_integer():
            value = int(value)
    elif field in choices:
        value = {str(choice): choice for choice in choices[field]}.get(value, value)
    try:
        if field == "model":
            models.chosen(value)
        elif field in ranges or field in choices:
            kind.check_value(field, value, model)
        else:
            kind(**{field: value})
    except TinyllmError as error:
        return str(error)
    return None
