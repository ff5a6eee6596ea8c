"""Losses on logits and their derivatives: what the text says, or what a teacher says.

Each function returns a sum over rows in nats (or, for the distance, in probability) and
overwrites the logits with the derivative of that sum. Averaging is the caller's business.
"""

import numpy as np

from tinyllm.training.parameters import Array


def softmax_in_place(logits: Array) -> Array:
    """Turn logits (T, V) into probabilities; returns the log of each row's sum, (T,)."""
    logits -= logits.max(axis=-1, keepdims=True)
    np.exp(logits, out=logits)
    total = logits.sum(axis=-1, keepdims=True)
    logits /= total
    return np.asarray(np.log(total[:, 0]))


def cross_entropy(logits: Array, targets: Array) -> float:
    """Sum of -log q(target), targets (T,) integers; logits become softmax(logits) - one_hot."""
    rows = np.arange(len(targets))
    chosen = logits[rows, targets] - logits.max(axis=-1)
    log_total = softmax_in_place(logits)
    logits[rows, targets] -= 1.0
    return float(np.sum(log_total - chosen, dtype=np.float64))


def divergence(logits: Array, teacher: Array) -> float:
    """Sum of KL(p || q), p the teacher's probabilities (T, V); logits become q - p."""
    softmax_in_place(logits)
    smallest = np.finfo(logits.dtype).tiny
    ratio = np.log(np.maximum(teacher, smallest) / np.maximum(logits, smallest))
    total = float(np.sum(teacher * ratio, dtype=np.float64))
    logits -= teacher
    return total


def rejection(logits: Array, teacher: Array) -> float:
    """Sum of 1 - sum_x min(p, q): how often a draft q of a target p is rejected at T = 1.

    This is the total variation distance (Leviathan et al. 2023, corollary 3.6). With m = 1 where
    q < p, the derivative by the logits is -q (m - sum(q m)).
    """
    softmax_in_place(logits)
    below = (logits < teacher).astype(logits.dtype)
    accepted = float(np.minimum(logits, teacher).sum(dtype=np.float64))
    held = np.einsum("tv,tv->t", logits, below)
    below -= held[:, None]
    logits *= below
    np.negative(logits, out=logits)
    return len(logits) - accepted
