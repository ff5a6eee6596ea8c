"""What a call says when its numbers left the range of their type: which, where, and what helps."""

from collections.abc import Sequence

import numpy as np

from tinyllm.cache import KVCache
from tinyllm.errors import CacheRangeError, WeightsError
from tinyllm.layers import Array


def refuse_overflow(
    name: str, cache: KVCache, start: int, stop: int, logits: Sequence[Array]
) -> None:
    """Name the first keys or values at start..stop-1, or the logits, that are not finite."""
    for layer, (keys, values) in enumerate(cache.layers):
        for kind, new in (
            ("keys", keys.read(stop)[:, :, start:]),  # (G, D, S)
            ("values", values.read(stop)[:, start:]),  # (G, S, D)
        ):
            if not np.isfinite(new).all():
                raise CacheRangeError(
                    f"the {kind} of layer {layer + 1} hold a number that a KV cache in "
                    f"{cache.dtype} cannot: choose a wider KV dtype or, where there is none, "
                    'compute in "float64"'
                )
    for part in logits:
        if not np.isfinite(part).all():
            raise WeightsError(
                f"{name}'s weights are so large that its logits overflow in {part.dtype.name}: "
                'load it with dtype="float64", or train it anew'
            )
