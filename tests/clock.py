"""A clock that only calls of models move on, by as much as a test says."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tinyllm.model import Transformer

Ticks = Callable[[], float]


def model_clock(
    monkeypatch: pytest.MonkeyPatch, first: Callable[[Transformer], float], wider: float
) -> Ticks:
    """Every call takes `first` ticks of its model, and `wider` for each token but the first."""
    now = [0.0]
    forward = Transformer.forward

    def moving(model: Transformer, tokens: Sequence[int], *more: Any, **named: Any) -> Any:
        now[0] += first(model) + wider * (len(tokens) - 1)
        return forward(model, tokens, *more, **named)

    monkeypatch.setattr(Transformer, "forward", moving)
    return lambda: now[0]
