"""How well a model predicts a text it has not seen, and how often a draft would be accepted.

Windows of the model's context length stand side by side over the text; every prediction of a
window counts, and later positions see more text before them. Knows nothing of training: the
numbers on a model's card come from here and can be worked out again.
"""

from dataclasses import dataclass

import numpy as np

from tinyllm.training.batches import side_by_side
from tinyllm.training.losses import softmax_in_place
from tinyllm.training.network import Network
from tinyllm.training.parameters import Array

BANDS = ((0, 15), (16, 63), (64, 255), (256, 511))
AT_ONCE = 2  # windows a forward pass


@dataclass(frozen=True, slots=True)
class LossByPosition:
    """Mean loss in nats at each position of a window."""

    nats: Array  # (context_length,)
    windows: int

    @property
    def mean(self) -> float:
        """Over every prediction."""
        return float(self.nats.mean())

    @property
    def bands(self) -> dict[str, float]:
        """Mean loss of each band of positions that a window reaches."""
        reached = [band for band in BANDS if band[0] < len(self.nats)]
        return {
            f"{first}-{last}": float(self.nats[first : last + 1].mean()) for first, last in reached
        }


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a draft's predictions compare with a target's over the same windows."""

    acceptance: float  # mean of sum_x min(p, q) at T = 1
    greedy: float  # share of positions where both find the same symbol likeliest
    predictions: int


def loss_by_position(network: Network, text: Array, most: int | None = None) -> LossByPosition:
    """Loss over a text of token ids, in at most `most` windows evenly spaced."""
    length = network.config.context_length
    windows = side_by_side(text, length, most)
    total = np.zeros(length)
    for start in range(0, len(windows), AT_ONCE):
        part = windows[start : start + AT_ONCE]
        logits = network.forward(part[:, :-1])
        targets = part[:, 1:].reshape(-1)
        chosen = logits[np.arange(len(targets)), targets] - logits.max(axis=-1)
        nats = softmax_in_place(logits) - chosen
        total += nats.reshape(len(part), length).sum(axis=0)
    return LossByPosition(total / len(windows), len(windows))


def agreement(target: Network, draft: Network, text: Array, most: int | None = None) -> Agreement:
    """Acceptance and greedy agreement of a draft over the target's windows of a text."""
    length = min(target.config.context_length, draft.config.context_length)
    windows = side_by_side(text, length, most)
    accepted, same = 0.0, 0
    for start in range(0, len(windows), AT_ONCE):
        tokens = windows[start : start + AT_ONCE, :-1]
        p, q = target.forward(tokens), draft.forward(tokens)
        same += int(np.count_nonzero(p.argmax(axis=-1) == q.argmax(axis=-1)))
        softmax_in_place(p)
        softmax_in_place(q)
        accepted += float(np.minimum(p, q).sum(dtype=np.float64))
    predictions = len(windows) * length
    return Agreement(accepted / predictions, same / predictions, predictions)
