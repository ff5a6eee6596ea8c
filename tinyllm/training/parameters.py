"""All trained numbers of a model in one contiguous vector, with a named view for each weight.

One vector makes the optimiser, the gradient norm and a checkpoint a handful of operations.
Names and shapes come from ModelConfig.weight_shapes; nothing here knows what a weight does.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tinyllm.config import ModelConfig
from tinyllm.errors import WeightsError

Array = NDArray[Any]


class NamedVector:
    """Numbers in one vector, by the names and shapes of weights; also their gradients."""

    def __init__(
        self, shapes: Mapping[str, tuple[int, ...]], dtype: DTypeLike = np.float32
    ) -> None:
        self.shapes = shapes
        self.vector: Array = np.zeros(sum(map(math.prod, shapes.values())), dtype)
        self.views = self.named(self.vector)

    def named(self, vector: Array) -> dict[str, Array]:
        """A view for each weight into another vector of the same numbers, such as a moment."""
        views: dict[str, Array] = {}
        start = 0
        for name, shape in self.shapes.items():
            stop = start + math.prod(shape)
            views[name] = vector[start:stop].reshape(shape)
            start = stop
        return views

    def __getitem__(self, name: str) -> Array:
        return self.views[name]

    def assign(self, weights: Mapping[str, Array]) -> None:
        """Copy weights in by name. WeightsError names what is missing, foreign or misshapen."""
        for name, view in self.views.items():
            if name not in weights:
                raise WeightsError(f"the weights lack {name}")
            if weights[name].shape != view.shape:
                raise WeightsError(
                    f"{name} has shape {weights[name].shape}; the configuration asks {view.shape}"
                )
        if foreign := [name for name in weights if name not in self.views]:
            raise WeightsError(f"the weights hold {', '.join(foreign)}, which no model here has")
        for name, view in self.views.items():
            view[...] = weights[name]

    def matrix_mask(self) -> Array:
        """One for each number of a matrix, zero for gains and biases: (n_parameters,) float32."""
        mask = NamedVector(self.shapes, np.float32)
        for view in mask.views.values():
            view[...] = float(view.ndim == 2)
        return mask.vector


class Parameters(NamedVector):
    """A model's n_parameters numbers."""

    def __init__(self, config: ModelConfig, dtype: DTypeLike = np.float32) -> None:
        super().__init__(config.weight_shapes, dtype)
        self.config = config


def initialise(config: ModelConfig, generator: np.random.Generator) -> Parameters:
    """Fresh float32 weights: unit gains, zero biases, normal matrices.

    A product's deviation is half of 1 / sqrt(inputs); the two products that write to the
    residual stream are smaller by sqrt(2 L), as in GPT-2, so that depth does not add variance.
    """
    parameters = Parameters(config)
    for name, view in parameters.views.items():
        if name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight")):
            view[...] = 1.0
        elif view.ndim == 2:
            if name in ("wte.weight", "wpe.weight", "lm_head.weight"):
                deviation = 0.02
            else:
                deviation = 0.5 / math.sqrt(view.shape[0])
            if name.endswith("c_proj.weight"):
                deviation /= math.sqrt(2 * config.n_layer)
            view[...] = generator.normal(0.0, deviation, view.shape)
    return parameters
