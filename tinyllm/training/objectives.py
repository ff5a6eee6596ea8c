"""What a run minimises: the surprise at the text, or the distance to a teacher.

An objective overwrites the logits of a batch with the derivative of its sum over the rows. It
holds no state: the progress of the run, from 0 to 1, is an argument.
"""

from dataclasses import dataclass
from typing import Protocol

from tinyllm.errors import SettingError
from tinyllm.training.batches import Batch
from tinyllm.training.losses import cross_entropy, divergence, rejection
from tinyllm.training.parameters import Array

DIVERGENCE_UNTIL = 0.3  # share of a distillation's steps


class Objective(Protocol):
    """A loss summed over the rows of logits (B T, V)."""

    def __call__(self, logits: Array, batch: Batch, progress: float) -> float:
        """Overwrite the logits with the derivative of the returned sum."""


def next_character(logits: Array, batch: Batch, progress: float) -> float:
    """Cross-entropy with the text itself."""
    return cross_entropy(logits, batch.targets.reshape(-1))


@dataclass(frozen=True, slots=True)
class Distillation:
    """Divergence from the teacher first, then directly the share of rejected proposals.

    The divergence has a useful derivative from far away; what a draft is judged by is the rest.
    """

    divergence_until: float = DIVERGENCE_UNTIL

    def __post_init__(self) -> None:
        if not 0.0 <= self.divergence_until <= 1.0:
            raise SettingError(
                f"the share of steps on the divergence must be from 0 to 1, "
                f"not {self.divergence_until:g}"
            )

    def __call__(self, logits: Array, batch: Batch, progress: float) -> float:
        """See Objective; the batch must carry the teacher's probabilities."""
        if batch.teacher is None:
            raise TypeError("distillation needs a batch with a teacher's probabilities")
        teacher = batch.teacher.reshape(logits.shape).astype(logits.dtype)
        teacher /= teacher.sum(axis=-1, keepdims=True)  # rounded, they do not quite make one
        distance = divergence if progress < self.divergence_until else rejection
        return distance(logits, teacher)
