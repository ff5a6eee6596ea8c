"""Arrays that live as long as a network: asked for by name, allocated once, reused every step.

A name keeps the largest extent it was asked for; a smaller shape is a view of its beginning.
The contents are whatever was written last.
"""

import math

import numpy as np
from numpy.typing import DTypeLike

from tinyllm.training.parameters import Array


class Buffers:
    """Named scratch arrays of one dtype."""

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self._memory: dict[str, Array] = {}

    def get(self, name: str, shape: tuple[int, ...]) -> Array:
        """An array of that shape; two names never overlap."""
        size = math.prod(shape)
        memory = self._memory.get(name)
        if memory is None or memory.size < size:
            memory = self._memory[name] = np.empty(size, self.dtype)
        return memory[:size].reshape(shape)
