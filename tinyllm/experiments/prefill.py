"""Filling the cache: all tokens in one call, or one by one as decoding does. Timed in turn.

Both ways end with the same tokens in the cache; how far the last logits differ is in the row.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tinyllm.cache import PAGED_DTYPES
from tinyllm.errors import SettingError
from tinyllm.experiments.prompts import validation_text
from tinyllm.experiments.settings import (
    CONTEXT_LENGTH,
    KV_HEADS,
    TARGET_OF_KV_HEADS,
    Settings,
)
from tinyllm.experiments.timing import Case, Spread, in_turn
from tinyllm.layers import Array
from tinyllm.model import Transformer

SIZES = (64, 256)  # tokens, as in the article
TURNS = 5


@dataclass(frozen=True, slots=True)
class PrefillConfig(Settings):
    """What the Prefill page measures: this, and the reuse of a prefix (see prefix.py)."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"prefix": (0, 480), "own": (1, 256)}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "kv_heads": KV_HEADS,
        "kv_dtype": PAGED_DTYPES,
    }

    prefix: int = 384  # tokens that were computed before
    own: int = 64  # tokens of a request behind them
    kv_dtype: str = "float32"
    kv_heads: int = 4

    def check(self) -> None:
        """Both parts fit the model's positions."""
        if self.prefix + self.own > CONTEXT_LENGTH:
            raise SettingError(
                f"prefix and own are {self.prefix + self.own} tokens together and the model has "
                f"{CONTEXT_LENGTH} positions: lower own to {CONTEXT_LENGTH - self.prefix} or "
                f"prefix to {CONTEXT_LENGTH - self.own}"
            )

    @property
    def target(self) -> str:
        """Name of the target model."""
        return TARGET_OF_KV_HEADS[self.kv_heads]


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
    sizes: Iterable[int] = SIZES,
    turns: int = TURNS,
    kv_dtype: str | None = None,
) -> Iterator[PrefillRow]:
    """A row for each number of tokens of the validation text."""
    text = model.tokenizer.encode(validation_text()[: model.config.context_length])
    cache = model.new_cache(kv_dtype)
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
        seconds = in_turn(cases, turns, warm_up=1)
        yield PrefillRow(
            size,
            Spread.of(seconds["at once"]),
            Spread.of(seconds["one by one"]),
            float(abs(at_once() - one_by_one()).max()),
        )
