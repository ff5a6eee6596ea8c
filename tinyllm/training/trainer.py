"""The training loop: a generator that does one step each time it is asked for the next event.

It prints nothing, reads no clock and writes no file; whoever consumes it shows progress and
saves. All its state (weights, moments, step, random generator) is in the open for a checkpoint.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tinyllm.training.batches import Batch, Source
from tinyllm.training.network import Network
from tinyllm.training.objectives import Objective, next_character
from tinyllm.training.optimiser import OPTIMISERS
from tinyllm.training.parameters import Parameters
from tinyllm.training.schedule import Plan


@dataclass(frozen=True, slots=True)
class StepDone:
    """One update of the weights."""

    step: int  # updates done so far, this one included
    loss: float  # mean of the objective over the step's characters
    length: int  # context length of the step
    characters: int  # trained on in this step
    gradient_norm: float


class Trainer:
    """Weights, optimiser and generator of one run."""

    def __init__(
        self,
        parameters: Parameters,
        plan: Plan,
        source: Source,
        generator: np.random.Generator,
        objective: Objective = next_character,
    ) -> None:
        self.parameters = parameters
        self.plan = plan
        self.source = source
        self.generator = generator
        self.objective = objective
        self.network = Network(parameters)
        self.optimiser = OPTIMISERS[plan.optimiser](parameters, plan)
        self.step = 0

    def run(self) -> Iterator[StepDone]:
        """Steps until the plan's end, an event after each."""
        while self.step < self.plan.steps:
            batch = self.source.draw(self.step, self.generator)
            loss = self.accumulate(batch)
            norm = self.optimiser.update(self.network.gradients.vector, self.step)
            self.step += 1
            yield StepDone(self.step, loss, batch.length, self.plan.tokens_per_step, norm)

    def accumulate(self, batch: Batch) -> float:
        """Fill the gradients with the derivative of the mean loss over a batch, and return it."""
        at_once = self.plan.tokens_at_once // batch.length
        share = 1.0 / batch.tokens.size
        progress = self.step / self.plan.steps
        self.network.gradients.vector[...] = 0.0
        total = 0.0
        for start in range(0, len(batch.tokens), at_once):
            part = batch.rows(start, start + at_once)
            logits = self.network.forward(part.tokens)
            total += self.objective(logits, part, progress)
            logits *= share
            self.network.backward(logits)
        return total * share
