"""A clock that only calls of models move on, by as much as a test says."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tinyllm.cache import KVCache
from tinyllm.model import Transformer

Ticks = Callable[[], float]


def model_clock(
    monkeypatch: pytest.MonkeyPatch,
    first: Callable[[Transformer], float],
    wider: float,
    longer: float = 0.0,
) -> Ticks:
    """Every call takes `first` ticks of its model, `wider` for each token but the first, and
    `longer` for each token that its cache holds."""
    now = [0.0]
    forward = Transformer.forward

    def moving(
        model: Transformer,
        tokens: Sequence[int],
        cache: KVCache | None = None,
        *more: Any,
        **named: Any,
    ) -> Any:
        held = cache.length if cache is not None else 0
        now[0] += first(model) + wider * (len(tokens) - 1) + longer * held
        return forward(model, tokens, cache, *more, **named)

    monkeypatch.setattr(Transformer, "forward", moving)
    return lambda: now[0]
