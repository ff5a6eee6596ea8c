"""What fewer KV heads cost in quality: loss on unseen text, cache bytes and step time.

The shipped targets with 4, 2 and 1 KV heads, the smaller ones made both ways: uptrained from the
mean of the first one's heads (Ainslie et al. 2023), and trained from scratch for as many steps.
All read the same windows, so that their losses can be compared window by window.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from time import perf_counter

import numpy as np

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.experiments.timing import Spread
from tinyllm.loading import MODELS, shipped_models
from tinyllm.model import Transformer
from tinyllm.training.batches import side_by_side
from tinyllm.training.losses import cross_entropy

STEPS_PER_TURN = 20  # one step is short: many in a turn, as a generation makes them
SCRATCH, UPTRAINED = "from scratch", "uptrained"


@dataclass(frozen=True, slots=True)
class Variant:
    """One trained target, and what its card says of it."""

    name: str
    config: ModelConfig
    training: str  # SCRATCH or UPTRAINED
    card_loss: float  # nats a character on all unseen files

    @property
    def bytes_per_token(self) -> int:
        """Of a float32 cache."""
        config = self.config
        return 2 * config.n_layer * config.n_kv_head * config.head_dim * 4


@dataclass(frozen=True, slots=True)
class VariantTime:
    """One model on one window: its loss there, and the time of a step with a full context."""

    model: str
    window: int
    loss: float  # nats a character
    seconds: float  # a step


@dataclass(frozen=True, slots=True)
class QualityRow:
    """One model: what a token of its cache takes, and what it predicts with it."""

    name: str
    model: str
    kv_heads: int
    training: str
    bytes_per_token: int
    loss: float  # nats a character, over the windows read
    above: float  # the loss minus the first model's on the same windows
    above_error: float  # standard error of that difference; 0 with fewer than two windows
    windows: int
    card_loss: float
    step_seconds: Spread


def variants() -> list[Variant]:
    """The shipped models of the target's shape, most KV heads first, then by name."""
    whole = PRESETS["target"]
    found = []
    for name in shipped_models():
        config = ModelConfig.load(MODELS / name / "config.json")
        same_heads = config.n_head == whole.n_head
        if not same_heads or replace(whole, n_kv_head=config.n_kv_head) != config:
            continue
        card = json.loads((MODELS / name / "card.json").read_text("utf-8"))
        training = UPTRAINED if len(card["trainings"]) > 1 else SCRATCH
        found.append(Variant(name, config, training, card["validation"]["nats_per_character"]))
    return sorted(found, key=lambda one: (-one.config.n_kv_head, one.name))


def variant_times(
    models: Sequence[Transformer], text: str, windows: int | None = None
) -> Iterator[VariantTime]:
    """Every model on every window in turn, one event each; `windows` evenly spaced, or all.

    A window is as long as the models' context; the step timed is the last one that fits.
    """
    config = models[0].config
    length, held = config.context_length, config.context_length - 1
    tokens = np.array(models[0].tokenizer.encode(text))
    caches = [model.new_cache(capacity=length) for model in models]
    for model, cache in zip(models, caches, strict=True):
        model.forward(tokens[:held].tolist(), cache, rows=0)
    for number, window in enumerate(side_by_side(tokens, length, windows)):
        for model, cache in zip(models, caches, strict=True):
            logits = model.forward(window[:-1].tolist())
            loss = cross_entropy(logits, window[1:]) / length
            last = [int(window[-1])]
            start = perf_counter()
            for _ in range(STEPS_PER_TURN):
                model.forward(last, cache)
                cache.truncate(held)
            seconds = (perf_counter() - start) / STEPS_PER_TURN
            yield VariantTime(model.name, number, loss, seconds)


def quality_rows(known: Sequence[Variant], times: Iterable[VariantTime]) -> list[QualityRow]:
    """A row for every variant, over the windows that all have read."""
    read: dict[int, dict[str, VariantTime]] = {}
    for time in times:
        read.setdefault(time.window, {})[time.model] = time
    whole = [window for window in read.values() if len(window) == len(known)]
    return [_row(variant, known[0], whole) for variant in known] if whole else []


def _row(variant: Variant, first: Variant, windows: Sequence[dict[str, VariantTime]]) -> QualityRow:
    above = [window[variant.name].loss - window[first.name].loss for window in windows]
    return QualityRow(
        name="quality",
        model=variant.name,
        kv_heads=variant.config.n_kv_head,
        training=variant.training,
        bytes_per_token=variant.bytes_per_token,
        loss=fmean(window[variant.name].loss for window in windows),
        above=fmean(above),
        above_error=stdev(above) / len(above) ** 0.5 if len(above) > 1 else 0.0,
        windows=len(windows),
        card_loss=variant.card_loss,
        step_seconds=Spread.of(window[variant.name].seconds for window in windows),
    )


def best_of_fewest(rows: Sequence[QualityRow]) -> QualityRow:
    """Of the models with the fewest KV heads the one with the lowest loss."""
    fewest = min(row.kv_heads for row in rows)
    return min((row for row in rows if row.kv_heads == fewest), key=lambda row: row.loss)
