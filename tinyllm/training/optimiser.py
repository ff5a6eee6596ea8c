"""AdamW on one flat vector, with the gradient clipped by its norm.

Loshchilov and Hutter (2019): decay is apart from the moments and touches matrices only. The
moments live here; the plan says how fast to go.
"""

import math

import numpy as np

from tinyllm.training.parameters import Array, Parameters
from tinyllm.training.schedule import Plan


class AdamW:
    """First and second moments of every parameter, updated in place."""

    def __init__(self, parameters: Parameters, plan: Plan) -> None:
        self.parameters = parameters
        self.plan = plan
        self.first: Array = np.zeros_like(parameters.vector)
        self.second: Array = np.zeros_like(parameters.vector)
        self._decayed = parameters.matrix_mask()
        self._scratch: Array = np.empty_like(parameters.vector)

    def update(self, gradient: Array, step: int) -> float:
        """One step, counted from 0. Overwrites the gradient; returns its norm before the clip."""
        plan, vector, scratch = self.plan, self.parameters.vector, self._scratch
        norm = math.sqrt(float(gradient @ gradient))
        if norm > plan.clip:
            gradient *= plan.clip / norm
        rate = plan.rate(step)
        self.first *= plan.beta1
        np.multiply(gradient, 1.0 - plan.beta1, out=scratch)
        self.first += scratch
        self.second *= plan.beta2
        gradient *= gradient
        gradient *= 1.0 - plan.beta2
        self.second += gradient
        np.multiply(vector, self._decayed, out=scratch)
        scratch *= rate * plan.decay
        vector -= scratch
        np.multiply(self.second, 1.0 / (1.0 - plan.beta2 ** (step + 1)), out=scratch)
        np.sqrt(scratch, out=scratch)
        scratch += 1e-8
        np.divide(self.first, scratch, out=scratch)
        scratch *= rate / (1.0 - plan.beta1 ** (step + 1))
        vector -= scratch
        return norm
