"""`train --medusa-of`: heads for a target trained in a folder, with their card.

It takes minutes, so there is no checkpoint: stopped, it leaves nothing behind.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from tinyllm.errors import CheckpointError
from tinyllm.speculative.drafters import HEADS_FILE
from tinyllm.training.card import versions
from tinyllm.training.checkpoint import load_parameters, make_folder, write_arrays, write_text
from tinyllm.training.corpus import Corpus
from tinyllm.training.heads import HeadsNetwork, HeadsTrainer, acceptance
from tinyllm.training.job import fresh_generator
from tinyllm.training.network import Network
from tinyllm.training.run import interruptible
from tinyllm.training.schedule import Plan

LENGTH = 256  # of the windows; the heads see one state, whatever stood before it
TRIAL = 6  # steps, of which the first warms up
WINDOWS = 64  # of validation text, behind the acceptance on the card
SAMPLE_WINDOWS = 16  # of the sample text that ships, on which a card can be checked


@dataclass(frozen=True, slots=True)
class HeadsJob:
    """Everything that decides which heads come out."""

    target: Path  # folder of the model they draft for
    plan: Plan
    corpus: Corpus

    def trainer(self) -> HeadsTrainer:
        """At step 0."""
        return HeadsTrainer(
            Network(load_parameters(self.target)),
            self.plan,
            self.corpus.train,
            fresh_generator(self.plan.seed),
        )

    def seconds_per_step(self) -> float:
        """Measured on a trainer that is thrown away."""
        steps = self.trainer().run()
        next(steps)
        start = time.perf_counter()
        for _, _done in zip(range(TRIAL - 1), steps, strict=False):
            pass
        return (time.perf_counter() - start) / (TRIAL - 1)


def one_length(plan: Plan) -> Plan:
    """The plan with all steps on windows of LENGTH."""
    return replace(plan, lengths=(LENGTH,), shares_first=(1.0,), shares_last=(1.0,))


def refuse_used(folder: Path) -> None:
    """CheckpointError when a folder holds heads already, or is no folder."""
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"--out {folder} is a file: give a folder, new or without heads")
    if (folder / HEADS_FILE).exists():
        raise CheckpointError(f"--out {folder} holds heads already: give another folder")


def train(
    job: HeadsJob,
    folder: Path,
    command: Callable[[int], str],
    trainings: list[str],
    say: Callable[[str], object],
) -> int:
    """Train, then write heads and card; 0 when finished, 130 when interrupted.

    `command` gives the command of that many steps, `trainings` led to the target.
    """
    trainer = job.trainer()
    start = time.perf_counter()
    with interruptible() as received, tqdm(total=job.plan.steps, file=sys.stderr) as bar:
        for done in trainer.run():
            bar.set_postfix_str(f"loss {done.loss:.3f}", refresh=False)
            bar.update()
            if received:
                return 130
    seconds = time.perf_counter() - start
    network, corpus = trainer.network, job.corpus
    kept = acceptance(trainer.target, network, corpus.validation, WINDOWS)
    sample = acceptance(trainer.target, network, corpus.sample(), SAMPLE_WINDOWS)
    make_folder(folder)
    halves = {name: one.astype(np.float16) for name, one in network.parameters.views.items()}
    write_arrays(folder / HEADS_FILE, halves, {"format": "np"})
    made = command(job.plan.steps)
    card = _card(job, network, made, seconds)
    card |= {
        "acceptance": {"by_head": kept, "windows": WINDOWS, "temperature": 1.0},
        "sample_text": {"by_head": sample, "windows": SAMPLE_WINDOWS, "temperature": 1.0},
        "trainings": [*trainings, made],
    }
    write_text(folder / "card.json", json.dumps(card, indent=2) + "\n")
    shown = ", ".join(f"{one:.3f}" for one in kept)
    say(f"{folder}: the target accepts {shown} of the heads' proposals on text they have not seen")
    return 0


def _card(job: HeadsJob, heads: HeadsNetwork, command: str, seconds: float) -> dict[str, Any]:
    manifest = job.corpus.manifest
    return {
        "parameters": int(heads.parameters.vector.size),
        "target": job.target.name,
        "command": command,
        "training": {
            "steps": job.plan.steps,
            "characters_seen": job.plan.steps * job.plan.tokens_per_step,
            "seconds": round(seconds, 1),
            "plan": job.plan.to_json(),
            "objective": "the target's law after each token, divergence then rejection",
        },
        "corpus": {key: manifest[key] for key in ("source", "sha256", "characters", "files")},
        "versions": versions(),
    }
