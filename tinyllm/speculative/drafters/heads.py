"""Heads on the target's last hidden state draft the tokens after its own next one.

Medusa (Cai et al. 2024, arXiv 2401.10774): head j reads the state h behind the last layer, from
which the target drew x(1), and predicts x(j + 1). Each also sees the token before, x(j), as in
Hydra (Ankner et al. 2024, arXiv 2402.05109): the heads' proposals then follow each other. One
residual SiLU block and a head of its own:

    z = h A_j + B_j[x(j)]      logits = (h + z sigmoid(z)) U_j

No cache, and no call of any layer. Training them is training/heads.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from tinyllm.errors import SettingError, WeightsError
from tinyllm.layers import Array
from tinyllm.sampling import Sampler
from tinyllm.speculative.drafters.proposal import Footprint, Proposal, RunShape

HEADS_FILE = "heads.safetensors"


def head_shapes(n_heads: int, width: int, vocab_size: int) -> dict[str, tuple[int, ...]]:
    """Every weight of heads 1..n_heads by name: A (C, C), B (V, C) and U (C, V)."""
    shapes: dict[str, tuple[int, ...]] = {}
    for j in range(1, n_heads + 1):
        shapes[f"{j}.hidden.weight"] = (width, width)
        shapes[f"{j}.token.weight"] = (vocab_size, width)
        shapes[f"{j}.out.weight"] = (width, vocab_size)
    return shapes


@dataclass(frozen=True, slots=True)
class Head:
    """One head's matrices, float32."""

    hidden: Array  # A (C, C)
    token: Array  # B (V, C)
    out: Array  # U (C, V)

    def logits(self, state: Array, token: int) -> Array:
        """(C,) and the token before -> (V,)."""
        z = state @ self.hidden
        z += self.token[token]
        z *= 1 / (1 + np.exp(-z))
        z += state
        logits: Array = z @ self.out
        return logits

    @property
    def nbytes(self) -> int:
        return self.hidden.nbytes + self.token.nbytes + self.out.nbytes


class HeadsDrafter:
    """Trained heads of one target; at most as many proposals a round as there are heads."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        """Weights by the names of head_shapes; WeightsError names one that is missing or wrong."""
        names = ("1.token.weight", *weights)
        n_heads = sum(name.endswith(".token.weight") for name in weights)
        vocab_size, width = np.shape(weights.get(names[0], np.empty((0, 0))))
        expected = head_shapes(n_heads, width, vocab_size)
        if not n_heads or {name: one.shape for name, one in weights.items()} != expected:
            raise WeightsError(
                "heads need for each j from 1 on j.hidden.weight (C, C), j.token.weight (V, C) "
                f"and j.out.weight (C, V), not {', '.join(sorted(weights)) or 'nothing'}"
            )
        self.width, self.vocab_size = width, vocab_size
        self.heads = [
            Head(*(_ready(weights[f"{j}.{part}.weight"]) for part in ("hidden", "token", "out")))
            for j in range(1, n_heads + 1)
        ]

    def start(self, run: RunShape) -> "HeadsDraft":
        """SettingError for a target of another shape than the one they were trained on."""
        if run.target is None:
            raise SettingError("heads read the target's states: start them through speculate()")
        config = run.target.config
        if (config.width, config.vocab_size) != (self.width, self.vocab_size):
            raise SettingError(
                f"these heads read {self.width} numbers and know {self.vocab_size} symbols; "
                f"{run.target.name} has {config.width} and {config.vocab_size}"
            )
        return HeadsDraft(self.heads, run)


class HeadsDraft:
    """The heads in one run. Before the first call of the target there is nothing to read."""

    def __init__(self, heads: Sequence[Head], run: RunShape) -> None:
        self._heads = heads
        self._sampling = run.sampling
        self._state: Array | None = None
        self._position = -1  # of the token that followed the state

    @property
    def footprint(self) -> Footprint:
        """The heads' weights; they keep one state and no cache."""
        return Footprint(sum(head.nbytes for head in self._heads))

    def observe(self, hidden: Array, position: int) -> None:
        """The state (C + 1,) from which the token at `position` was drawn, see forward()."""
        # A normalised row has the length 1, the norm of the training network sqrt(C).
        self._state = hidden[:-1] * np.sqrt(len(hidden) - 1, dtype=hidden.dtype)
        self._position = position

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """A draw of each head, which the next one sees."""
        proposal = Proposal([], [])
        if self._state is None or self._position != len(sequence) - 1:
            return proposal
        token = sequence[-1]
        for head in self._heads[:k]:
            logits = head.logits(self._state, token)
            q = self._sampling.distribution(logits)
            token = sampler.draw(q)
            proposal.tokens.append(token)
            proposal.q.append(q)
            proposal.logits.append(logits)
        return proposal

    def commit(self, sequence: Sequence[int]) -> None:
        """Nothing to learn but the state, which comes with observe()."""


def load_heads(folder: Path) -> HeadsDrafter:
    """The heads of a folder that `train --medusa-of` made; WeightsError names what is wrong."""
    path = folder / HEADS_FILE
    try:
        return HeadsDrafter(load_file(path))
    except (OSError, SafetensorError) as error:
        raise WeightsError(
            f"no heads at {path} ({error}): make them with "
            f"python -m tinyllm train --medusa-of MODEL --out {folder}"
        ) from error


def _ready(weight: Array) -> Array:
    ready = np.ascontiguousarray(weight, np.float32)
    ready.setflags(write=False)
    return ready
