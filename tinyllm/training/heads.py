"""Training of heads that draft for a frozen target, see speculative/drafters/heads.py.

The target reads windows of text; head j then learns, from the state at t and the token at t + j,
what the target itself says at t + j. It is judged as a drafter is: by how much of its law the
target accepts. Forward and backward are written out here; the target's weights never change.
"""

from collections.abc import Iterator

import numpy as np

from tinyllm.speculative.drafters.heads import head_shapes
from tinyllm.training.batches import TextWindows, side_by_side
from tinyllm.training.losses import divergence, rejection, softmax_in_place
from tinyllm.training.network import Network
from tinyllm.training.optimiser import AdamW
from tinyllm.training.parameters import Array, NamedVector
from tinyllm.training.schedule import Plan
from tinyllm.training.trainer import StepDone

HEADS = 4
DIVERGENCE_UNTIL = 0.3  # share of the steps, as in a draft's distillation
_DEVIATION = 0.02  # of fresh tables


class HeadsNetwork:
    """All heads, their gradients, and what the way back needs of the last forward pass."""

    def __init__(self, parameters: NamedVector) -> None:
        self.parameters = parameters
        self.gradients = NamedVector(parameters.shapes, parameters.vector.dtype)
        self._kept: tuple[Array, ...] = ()

    @property
    def n_heads(self) -> int:
        """How many tokens ahead of the target's own they reach."""
        return len(self.parameters.shapes) // 3

    def forward(self, j: int, states: Array, tokens: Array) -> Array:
        """Head j on states (R, C) and the tokens before, (R,) integers -> logits (R, V)."""
        weights = self.parameters
        z = states @ weights[f"{j}.hidden.weight"]
        z += weights[f"{j}.token.weight"][tokens]
        gate = 1 / (1 + np.exp(-z))
        block = states + z * gate
        self._kept = states, tokens, z, gate, block
        return np.asarray(block @ weights[f"{j}.out.weight"])

    def backward(self, j: int, d_logits: Array) -> None:
        """Add the derivatives of the last forward pass, of the same head, to the gradients."""
        states, tokens, z, gate, block = self._kept
        weights, grads = self.parameters, self.gradients
        grads[f"{j}.out.weight"][...] += block.T @ d_logits
        d_z = d_logits @ weights[f"{j}.out.weight"].T
        d_z *= gate * (1 + z * (1 - gate))  # of SiLU
        grads[f"{j}.hidden.weight"][...] += states.T @ d_z
        one_hot = np.zeros((len(tokens), len(weights[f"{j}.token.weight"])), d_z.dtype)
        one_hot[np.arange(len(tokens)), tokens] = 1
        grads[f"{j}.token.weight"][...] += one_hot.T @ d_z


def fresh_heads(target: Network, n_heads: int, generator: np.random.Generator) -> NamedVector:
    """Heads that begin as the target's own head on its own state, with small tables."""
    config = target.config
    parameters = NamedVector(head_shapes(n_heads, config.width, config.vocab_size))
    gain, head = target.parameters["ln_f.weight"], target.parameters["lm_head.weight"]
    for name, view in parameters.views.items():
        if name.endswith("out.weight"):
            view[...] = gain[:, None] * head.T
        else:
            view[...] = generator.normal(0, _DEVIATION, view.shape)
    return parameters


def states_and_laws(target: Network, windows: Array) -> tuple[Array, Array]:
    """Windows (B, T) -> the normalised last states (B, T, C) and the target's laws (B, T, V).

    Both are views of buffers that the target's next forward pass overwrites.
    """
    batch, length = windows.shape
    laws = target.forward(windows)
    softmax_in_place(laws)
    states = target.buffers.get("ln_f.normed", (batch * length, target.config.width))
    return states.reshape(batch, length, -1), laws.reshape(batch, length, -1)


def rows_of(j: int, windows: Array, states: Array, laws: Array) -> tuple[Array, Array, Array]:
    """What head j reads, the tokens before, and the laws it learns: (R, C), (R,), (R, V).

    The state at t and the token at t + j meet the law at t + j, of the token after it.
    """
    return (
        states[:, :-j].reshape(-1, states.shape[2]),
        windows[:, j:].reshape(-1),
        laws[:, j:].reshape(-1, laws.shape[2]),
    )


class HeadsTrainer:
    """A run of the heads of one target on one text."""

    def __init__(
        self, target: Network, plan: Plan, text: Array, generator: np.random.Generator
    ) -> None:
        self.target = target
        self.plan = plan
        self.network = HeadsNetwork(fresh_heads(target, HEADS, generator))
        self.optimiser = AdamW(self.network.parameters, plan)
        self.source = TextWindows(plan, text)
        self.generator = generator

    def run(self) -> Iterator[StepDone]:
        """Every step of the plan, an event after each; loss is the mean over the heads."""
        for step in range(self.plan.steps):
            batch = self.source.draw(step, self.generator)
            self.network.gradients.vector[...] = 0
            at_once = self.plan.tokens_at_once // batch.length
            parts = range(0, len(batch.tokens), at_once)
            losses = [
                self.accumulate(batch.tokens[start : start + at_once], step / self.plan.steps)
                for start in parts
            ]
            self.network.gradients.vector /= len(parts)
            norm = self.optimiser.update(self.network.gradients.vector, step)
            loss = sum(losses) / len(parts)
            yield StepDone(step + 1, loss, batch.length, self.plan.tokens_per_step, norm)

    def accumulate(self, windows: Array, progress: float) -> float:
        """Add the derivative of the mean loss over windows (B, T) and heads; return that loss."""
        distance = divergence if progress < DIVERGENCE_UNTIL else rejection
        states, laws = states_and_laws(self.target, windows)
        total = 0.0
        for j in range(1, self.network.n_heads + 1):
            read, tokens, taught = rows_of(j, windows, states, laws)
            logits = self.network.forward(j, read, tokens)
            share = 1 / (len(tokens) * self.network.n_heads)
            total += distance(logits, taught) * share
            logits *= share
            self.network.backward(j, logits)
        return total


def acceptance(target: Network, heads: HeadsNetwork, text: Array, most: int) -> list[float]:
    """Mean of sum_x min(p, q) for each head at T = 1, the tokens before it being the text's."""
    windows = side_by_side(text, target.config.context_length, most)
    kept, rows = [0.0] * heads.n_heads, [0] * heads.n_heads
    for window in windows[:, None, :-1]:
        states, laws = states_and_laws(target, window)
        for j in range(1, heads.n_heads + 1):
            read, tokens, taught = rows_of(j, window, states, laws)
            q = heads.forward(j, read, tokens)
            softmax_in_place(q)
            kept[j - 1] += float(np.minimum(q, taught).sum(dtype=np.float64))
            rows[j - 1] += len(tokens)
    return [one / count for one, count in zip(kept, rows, strict=True)]
