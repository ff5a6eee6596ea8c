"""Filling the cache: all tokens in one call, or one by one as decoding does. Timed in turn.

Both ways end with the same tokens in the cache; how far the last logits differ is in the row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyllm.cache import PAGED_DTYPES
from tinyllm.errors import SettingError
from tinyllm.experiments import models
from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.prompts import validation_tokens
from tinyllm.experiments.settings import KV_HEADS, Choices, Ranges, Settings
from tinyllm.experiments.timing import Case, Progress, Spread, steps_in_turn
from tinyllm.layers import Array
from tinyllm.model import Transformer

SIZES = (64, 256)  # tokens, as in the article
TURNS = 5


@dataclass(frozen=True, slots=True)
class PrefillConfig(Settings):
    """What the Prefill page measures: this, and the reuse of a prefix (see prefix.py)."""

    ranges: ClassVar[Ranges] = {"prefix": (0, 480), "own": (1, 256)}
    choices: ClassVar[Choices] = {"kv_heads": KV_HEADS, "kv_dtype": PAGED_DTYPES}

    prefix: int = 384  # tokens that were computed before
    own: int = 64  # tokens of a request behind them
    kv_dtype: str = "float32"
    kv_heads: int = 0  # 0: the model's usual number
    model: str = models.DEFAULT

    @classmethod
    def choices_for(cls, model: ModelChoice) -> Choices:
        """KV heads follow the model."""
        return {**cls.choices, "kv_heads": model.kv_heads}

    def check(self) -> None:
        """Both parts fit the model's positions."""
        context = self.chosen_model.context_length
        if self.prefix + self.own > context:
            raise SettingError(
                f"prefix and own are {self.prefix + self.own} tokens together and the model has "
                f"{context} positions: lower own to {context - self.prefix} or "
                f"prefix to {context - self.own}"
            )

    @property
    def target(self) -> str:
        """Name of the target model, as it is stored."""
        return self.chosen_model.by_kv_heads[self.kv_heads]


@dataclass(frozen=True, slots=True)
class PrefillRow:
    """So many tokens into an empty cache, both ways."""

    tokens: int
    at_once_seconds: Spread
    one_by_one_seconds: Spread
    logit_difference: float  # the largest of the last token's

    @property
    def ratio(self) -> float:
        """How many times as long one by one takes."""
        return self.one_by_one_seconds.median / self.at_once_seconds.median


def rows(
    model: Transformer,
    sizes: Sequence[int] = SIZES,
    turns: int = TURNS,
    kv_dtype: str | None = None,
) -> Iterator[PrefillRow]:
    """A row for each number of tokens of the validation text."""
    events = measure(model, sizes, turns, kv_dtype)
    return (event for event in events if isinstance(event, PrefillRow))


def measure(
    model: Transformer, sizes: Sequence[int], turns: int, kv_dtype: str | None
) -> Iterator[PrefillRow | Progress]:
    """The rows, and before each how far its measurements are."""
    most = max(sizes)
    text = validation_tokens(model, most)
    cache = model.new_cache(kv_dtype, most)
    for size in sizes:
        tokens = text[:size]

        def at_once(tokens: list[int] = tokens) -> Array:
            cache.truncate(0)
            return model.forward(tokens, cache, rows=1)

        def one_by_one(tokens: list[int] = tokens) -> Array:
            cache.truncate(0)
            for token in tokens:
                logits = model.forward([token], cache, rows=1)
            return logits

        cases = {"at once": Case(at_once), "one by one": Case(one_by_one)}
        seconds = yield from steps_in_turn(f"{size} tokens", cases, turns, warm_up=1)
        yield PrefillRow(
            size,
            Spread.of(seconds["at once"]),
            Spread.of(seconds["one by one"]),
            float(abs(at_once() - one_by_one()).max()),
        )
