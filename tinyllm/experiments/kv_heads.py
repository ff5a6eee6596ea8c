"""bench kv-heads: what fewer KV heads save when attention reads its cache, and what they cost.

Two measurements side by side: one attention step by KV heads (attention_step.py), and the trained
targets with fewer KV heads (head_quality.py). Draws and prints nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import TypeVar

from tinyllm.experiments.attention_step import (
    CONTEXT,
    KV_HEADS,
    TURNS,
    AttentionRow,
    AttentionTime,
    attention_rows,
    attention_times,
)
from tinyllm.experiments.head_quality import (
    QualityRow,
    Variant,
    VariantTime,
    quality_rows,
    variant_times,
)
from tinyllm.experiments.prompts import validation_text
from tinyllm.model import Transformer

Event = TypeVar("Event")
WINDOWS_TO_WATCH = 24  # of the sample text's 127: enough to see which losses differ


def rows(
    known: Sequence[Variant], models: Sequence[Transformer]
) -> Iterator[AttentionRow | QualityRow]:
    """The attention steps of the article's layer, then the variants over all of the sample text."""
    yield from attention_rows(attention_times())
    yield from quality_rows(known, variant_times(models, validation_text()))


@dataclass(frozen=True, slots=True)
class HeadsTurn:
    """One turn of all head counts and one window of all models; empty when that part is over."""

    attention: tuple[AttentionTime, ...]
    quality: tuple[VariantTime, ...]


def watch(
    models: Sequence[Transformer],
    context: int = CONTEXT,
    turns: int = TURNS,
    windows: int = WINDOWS_TO_WATCH,
) -> Iterator[HeadsTurn]:
    """Both measurements at once, a turn of each an event."""
    attention = _in_turns(attention_times(context=context, turns=turns), len(KV_HEADS))
    quality = _in_turns(variant_times(models, validation_text(), windows), len(models))
    for pair in zip_longest(attention, quality, fillvalue=()):
        yield HeadsTurn(*pair)


def _in_turns(events: Iterator[Event], count: int) -> Iterator[tuple[Event, ...]]:
    return iter(lambda: tuple(islice(events, count)), ())


@dataclass(slots=True)
class HeadsRecord:
    """What both measurements gave so far."""

    known: Sequence[Variant]
    attention_times: list[AttentionTime] = field(default_factory=list)
    variant_times: list[VariantTime] = field(default_factory=list)

    def take(self, turn: HeadsTurn) -> bool:
        """Take one turn in; each is worth drawing."""
        self.attention_times += turn.attention
        self.variant_times += turn.quality
        return True

    @property
    def attention(self) -> list[AttentionRow]:
        """A row for every number of KV heads."""
        return attention_rows(self.attention_times)

    @property
    def quality(self) -> list[QualityRow]:
        """A row for every variant."""
        return quality_rows(self.known, self.variant_times)
