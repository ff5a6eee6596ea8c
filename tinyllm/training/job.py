"""What a run is made of, before it starts: shape, plan, corpus, first weights, teacher.

Builds the trainer, always in the same order from the same seed, and the identity by which a
checkpoint knows its run. Prints nothing and reads no clock.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinyllm.config import ModelConfig
from tinyllm.errors import ConfigError, CorpusError
from tinyllm.training.batches import TaughtWindows, TextWindows, side_by_side, teacher_table
from tinyllm.training.corpus import Corpus
from tinyllm.training.network import Network
from tinyllm.training.objectives import Distillation
from tinyllm.training.parameters import Parameters, initialise
from tinyllm.training.schedule import Plan
from tinyllm.training.trainer import Trainer


def fresh_generator(seed: int) -> np.random.Generator:
    """The one source of chance of a run."""
    return np.random.Generator(np.random.PCG64(seed))


def weights_hash(parameters: Parameters) -> str:
    """sha256 of every weight, in the order of the configuration."""
    return hashlib.sha256(parameters.vector.tobytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that decides which weights come out."""

    config: ModelConfig
    plan: Plan
    corpus: Corpus
    initial: Parameters | None = None  # first weights, instead of fresh ones
    teacher: Parameters | None = None  # distil from this model, instead of learning the text
    distillation: Distillation = field(default_factory=Distillation)
    taught: int | None = None  # characters that the teacher reads; None for the whole text

    def __post_init__(self) -> None:
        train, validation = len(self.corpus.train), len(self.corpus.validation)
        if min(train, validation) <= self.config.context_length:
            raise CorpusError(
                f"the corpus has {train:,} characters to train and {validation:,} to validate on; "
                f"a window of {self.config.context_length} does not fit"
            )
        if self.teacher and self.teacher.config.vocab_size != self.config.vocab_size:
            raise ConfigError(
                f"the teacher has {self.teacher.config.vocab_size} symbols, the model "
                f"{self.config.vocab_size}; they must be the same"
            )

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint must agree on to be resumed."""
        identity: dict[str, Any] = {
            "config": self.config.to_json(),
            "plan": self.plan.to_json(),
            "corpus": self.corpus.sha256,
            "objective": "next character",
        }
        if self.initial:
            identity["init_from"] = weights_hash(self.initial)
        if self.teacher:
            identity["objective"] = "distillation"
            identity["divergence_until"] = self.distillation.divergence_until
            identity["teacher"] = weights_hash(self.teacher)
            if self.taught:
                identity["taught"] = self.taught
        return identity

    def trainer(self, folder: Path) -> Trainer:
        """A trainer at step 0. A teacher's table, which may be large, is kept in the folder."""
        generator = fresh_generator(self.plan.seed)
        parameters = initialise(self.config, generator)
        if self.initial:
            parameters.assign(self.initial.views)
        if self.teacher is None:
            source = TextWindows(self.plan, self.corpus.train)
            return Trainer(parameters, self.plan, source, generator)
        length = max(self.plan.lengths)
        most = None if self.taught is None else self.taught // length
        windows = side_by_side(self.corpus.train, length, most)
        name = f"teacher-{weights_hash(self.teacher)[:12]}-{self.corpus.sha256[:12]}.npy"
        table = teacher_table(folder / name, Network(self.teacher), windows)
        taught = TaughtWindows(self.plan, windows, table)
        return Trainer(parameters, self.plan, taught, generator, self.distillation)
