"""Derivatives by hand against derivatives by differences, for every tensor of a model.

Fourth-order central differences in float64: (8 (f(+h) - f(-h)) - (f(+2h) - f(-2h))) / 12 h with
h = 1e-3, whose own error is near 1e-12 for a loss near one. Knows no network: it is given the
function and the gradients.
"""

from collections.abc import Callable

import numpy as np

from tinyllm.training.parameters import Array, NamedVector

STEP = 1e-3
FLOOR = 1e-5  # derivatives smaller than this are compared as if they were this large


def relative_error(analytic: float, numeric: float) -> float:
    """|a - n| / max(|a|, |n|, 1e-5). Below the floor an absolute error of 1e-11 gives 1e-6."""
    return abs(analytic - numeric) / max(abs(analytic), abs(numeric), FLOOR)


def difference(function: Callable[[], float], values: Array, index: int) -> float:
    """Derivative of the function by values[index], which is put back afterwards."""
    original = values[index]
    weighted = 0.0
    for weight, steps in ((8.0, 1), (-8.0, -1), (-1.0, 2), (1.0, -2)):
        values[index] = original + steps * STEP
        weighted += weight * function()
    values[index] = original
    return weighted / (12.0 * STEP)


def worst_errors(
    function: Callable[[], float],
    parameters: NamedVector,
    gradients: NamedVector,
    generator: np.random.Generator,
    entries: int = 48,
) -> dict[str, float]:
    """The largest relative error in each tensor: every entry of a small one, a sample of others."""
    worst: dict[str, float] = {}
    for name, view in parameters.views.items():
        values, analytic = view.reshape(-1), gradients[name].reshape(-1)
        chosen = np.arange(values.size)
        if values.size > entries:
            chosen = generator.choice(values.size, entries, replace=False)
        worst[name] = max(
            relative_error(float(analytic[index]), difference(function, values, int(index)))
            for index in chosen
        )
    return worst
