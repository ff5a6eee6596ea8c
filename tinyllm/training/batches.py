"""Where the characters of a step come from: windows of a text, alone or beside a teacher's opinion.

A source draws a batch for a step from the run's generator. A teacher's probabilities are worked
out once for the whole text and kept in a file, as the student passes over them many times.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from tinyllm.training.losses import softmax_in_place
from tinyllm.training.network import Network
from tinyllm.training.parameters import Array
from tinyllm.training.schedule import Plan

FULL = 65535.0  # a probability of one, as the teacher's table stores it


@dataclass(frozen=True, slots=True)
class Batch:
    """Characters, the ones that follow them, and what a teacher would have said."""

    tokens: Array  # (B, T) token ids
    targets: Array  # (B, T) token ids
    teacher: Array | None = None  # (B, T, V) probabilities in 1/65535, uint16

    @property
    def length(self) -> int:
        """T, the context length."""
        return int(self.tokens.shape[1])

    def rows(self, start: int, stop: int) -> "Batch":
        """Some of the sequences."""
        teacher = None if self.teacher is None else self.teacher[start:stop]
        return Batch(self.tokens[start:stop], self.targets[start:stop], teacher)


class Source(Protocol):
    """Draws the batch of a step."""

    def draw(self, step: int, generator: np.random.Generator) -> Batch:
        """tokens_per_step characters at the context length chosen for the step."""


class TextWindows:
    """Windows that start anywhere in a text; their length follows the plan's shares."""

    def __init__(self, plan: Plan, text: Array) -> None:
        self.plan = plan
        self.text = text

    def draw(self, step: int, generator: np.random.Generator) -> Batch:
        """See Source."""
        plan = self.plan
        length = int(generator.choice(plan.lengths, p=plan.shares(step)))
        count = plan.tokens_per_step // length
        starts = generator.integers(0, len(self.text) - length, size=count)
        windows = self.text[starts[:, None] + np.arange(length + 1)]
        return Batch(windows[:, :-1], windows[:, 1:])


class TaughtWindows:
    """Side-by-side windows of one length, for which the teacher's table holds probabilities."""

    def __init__(self, plan: Plan, windows: Array, table: Array) -> None:
        self.plan = plan
        self.windows = windows  # (N, T + 1)
        self.table = table  # (N, T, V) uint16

    def draw(self, step: int, generator: np.random.Generator) -> Batch:
        """See Source."""
        count = self.plan.tokens_per_step // (self.windows.shape[1] - 1)
        chosen = generator.integers(0, len(self.windows), size=count)
        windows = self.windows[chosen]
        return Batch(windows[:, :-1], windows[:, 1:], self.table[chosen])


def side_by_side(text: Array, length: int, most: int | None = None) -> Array:
    """Windows (N, length + 1) that cover a text; at most `most` of them, evenly spaced."""
    starts = np.arange(0, len(text) - length, length)
    if most is not None and most < len(starts):
        starts = starts[np.linspace(0, len(starts) - 1, most).round().astype(int)]
    return np.asarray(text[starts[:, None] + np.arange(length + 1)])


def teacher_table(path: Path, teacher: Network, windows: Array) -> Array:
    """The teacher's probabilities for windows (N, T + 1): (N, T, V) uint16, kept at `path`.

    A table already there, of the same shape, is used again: give each teacher its own path.
    """
    count, length = windows.shape[0], windows.shape[1] - 1
    shape = (count, length, teacher.config.vocab_size)
    if path.exists():
        table = np.load(path, mmap_mode="r")
        if table.shape == shape:
            return np.asarray(table)
    beside = path.with_name(path.name + ".partial")
    table = np.lib.format.open_memmap(beside, mode="w+", dtype=np.uint16, shape=shape)
    for start in range(0, count, 2):
        logits = teacher.forward(windows[start : start + 2, :-1])
        softmax_in_place(logits)
        logits *= FULL
        logits += 0.5  # the cast rounds down
        table[start : start + 2] = logits.reshape(-1, *shape[1:])
    table.flush()
    beside.rename(path)
    return np.asarray(np.load(path, mmap_mode="r"))
