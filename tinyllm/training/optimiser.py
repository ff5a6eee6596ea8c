"""AdamW and Muon on one flat vector, with the gradient clipped by its norm.

AdamW: Loshchilov and Hutter (2019); decay is apart from the moments and touches matrices only.
Muon: Jordan et al. (2024), scaled as by Liu et al. (2025) so that one rate suits both; the
matrices of the blocks move by their momentum with all its singular values brought near one, all
else by AdamW. The moments live here; the plan says how fast to go.
"""

import math

import numpy as np

from tinyllm.training.parameters import Array, NamedVector
from tinyllm.training.schedule import Plan

# Newton-Schulz: five times a X + b (X X') X + c (X X')^2 X, Jordan's coefficients.
_CUBIC, _QUINTIC, _LINEAR, _TIMES = -4.7750, 2.0315, 3.4445, 5
_ADAM_SIZE = 0.2  # root mean square of a typical AdamW direction, Liu et al. section 2.2


class AdamW:
    """First and second moments of every parameter, updated in place."""

    def __init__(self, parameters: NamedVector, plan: Plan) -> None:
        self.parameters = parameters
        self.plan = plan
        self.first: Array = np.zeros_like(parameters.vector)
        self.second: Array = np.zeros_like(parameters.vector)
        self._decayed = parameters.matrix_mask()
        self._scratch: Array = np.empty_like(parameters.vector)

    def update(self, gradient: Array, step: int) -> float:
        """One step, counted from 0. Clips the gradient; returns its norm before the clip."""
        plan, vector, scratch = self.plan, self.parameters.vector, self._scratch
        norm = math.sqrt(float(gradient @ gradient))
        if norm > plan.clip:
            gradient *= plan.clip / norm
        self._remember(self.first, gradient, plan.beta1)
        np.multiply(vector, self._decayed, out=scratch)
        scratch *= plan.rate(step) * plan.decay
        vector -= scratch
        vector -= self._change(gradient, step)
        return norm

    def _change(self, gradient: Array, step: int) -> Array:
        """What to take off, (n_parameters,) in the scratch array; overwrites the gradient."""
        plan, scratch = self.plan, self._scratch
        gradient *= gradient
        self._remember(self.second, gradient, plan.beta2)
        np.multiply(self.second, 1.0 / (1.0 - plan.beta2 ** (step + 1)), out=scratch)
        np.sqrt(scratch, out=scratch)
        scratch += 1e-8
        np.divide(self.first, scratch, out=scratch)
        scratch *= plan.rate(step) / (1.0 - plan.beta1 ** (step + 1))
        return scratch

    def _remember(self, moment: Array, new: Array, beta: float) -> None:
        """moment = beta moment + (1 - beta) new, in place."""
        moment *= beta
        np.multiply(new, 1.0 - beta, out=self._scratch)
        moment += self._scratch


class Muon(AdamW):
    """AdamW for embeddings, head, gains and biases; Muon for the matrices of the blocks."""

    def __init__(self, parameters: NamedVector, plan: Plan) -> None:
        super().__init__(parameters, plan)
        self._momenta = parameters.named(self.first)
        self._matrices = [
            name for name, view in parameters.views.items() if name[:2] == "h." and view.ndim == 2
        ]

    def _change(self, gradient: Array, step: int) -> Array:
        """AdamW's, and for a block's matrix 0.2 sqrt(max(in, out)) times the orthogonalised one.

        The momentum looks ahead by one gradient (Nesterov).
        """
        beta, gradients = self.plan.beta1, self.parameters.named(gradient)
        turned = {
            name: orthogonalised(beta * self._momenta[name] + (1.0 - beta) * gradients[name])
            for name in self._matrices
        }
        change = super()._change(gradient, step)
        views, rate = self.parameters.named(change), self.plan.rate(step)
        for name, matrix in turned.items():
            size = _ADAM_SIZE * max(matrix.shape) ** 0.5
            np.multiply(size * matrix, rate, out=views[name])
        return change


def orthogonalised(matrix: Array) -> Array:
    """(in, out) -> the same with every singular value that counts brought to 0.7 .. 1.2.

    Newton-Schulz iterations need products only; the nearest orthogonal matrix itself, by a
    singular value decomposition, would cost a hundred times as much and trains no better.
    """
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = wide / (np.linalg.norm(wide) + 1e-7)
    for _ in range(_TIMES):
        gram = x @ x.T
        x = (_CUBIC * gram + _QUINTIC * (gram @ gram)) @ x + _LINEAR * x
    return np.asarray(x if wide is matrix else x.T)


OPTIMISERS: dict[str, type[AdamW]] = {"adamw": AdamW, "muon": Muon}
