"""A job carried out in a folder: progress on the screen, checkpoints, a clean stop on Ctrl-C.

The only part of training that reads a clock. Checkpoints come every so many steps and at the end;
each leaves a model that can be loaded and a line of history beside it.
"""

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from tqdm import tqdm

from tinyllm.errors import CheckpointError
from tinyllm.training.checkpoint import (
    CHECKPOINT,
    make_folder,
    restore,
    save_checkpoint,
    save_model,
    write_text,
)
from tinyllm.training.evaluation import loss_by_position
from tinyllm.training.job import Job
from tinyllm.training.trainer import Trainer

CHECKPOINT_EVERY = 1000  # steps
WINDOWS_SEEN = 64  # validation windows looked at with each checkpoint


def seconds_per_step(job: Job, folder: Path) -> float:
    """Measured on a trainer that is thrown away, steps of early and late context lengths mixed."""
    trainer = job.trainer(folder)
    times = []
    for repeat in range(40):
        start = time.perf_counter()
        step = job.plan.steps * repeat // 40
        trainer.accumulate(trainer.source.draw(step, trainer.generator))
        trainer.optimiser.update(trainer.network.gradients.vector, step)
        times.append(time.perf_counter() - start)
    return float(np.mean(times[4:]))


@contextmanager
def trial_folder(folder: Path) -> Iterator[None]:
    """A folder to measure in; when that fails or is stopped, what was made and is empty goes."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    make_folder(folder)
    try:
        yield
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.rmdir()
        raise


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """A list that receives the signal when Ctrl-C or a polite kill comes; the loop looks at it."""
    received: list[int] = []
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, lambda number, _: received.append(number)) for kind in kinds]
    try:
        yield received
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


class Run:
    """One job in one folder.

    CheckpointError when the folder holds a run and resume is False, or none and it is True.
    """

    def __init__(self, job: Job, folder: Path, resume: bool = False) -> None:
        if not resume:
            refuse_used(folder)
            make_folder(folder)
            write_text(folder / "run.json", json.dumps(job.identity, indent=2) + "\n")
        self.job = job
        self.folder = folder
        self.trainer: Trainer = job.trainer(folder)
        self.seconds = restore(folder, self.trainer, job.identity) if resume else 0.0

    def train(self) -> bool:
        """Run to the end of the plan. False when interrupted; a checkpoint is saved either way."""
        plan, trainer = self.job.plan, self.trainer
        smooth: float | None = None
        bar = tqdm(
            total=plan.steps * plan.tokens_per_step,
            initial=trainer.step * plan.tokens_per_step,
            unit="ch",
            unit_scale=True,
            mininterval=1.0,
            file=sys.stderr,
        )
        with interruptible() as received, bar:
            clock = time.perf_counter()
            for done in trainer.run():
                now = time.perf_counter()
                self.seconds += now - clock
                clock = now
                smooth = done.loss if smooth is None else 0.99 * smooth + 0.01 * done.loss
                bar.set_postfix_str(f"loss {smooth:.3f}", refresh=False)
                bar.update(done.characters)
                if received or done.step % CHECKPOINT_EVERY == 0 or done.step == plan.steps:
                    self.save(smooth)
                    clock = time.perf_counter()
                if received:
                    break
        return trainer.step == plan.steps

    def save(self, loss: float) -> None:
        """Checkpoint, loadable model and one line of history."""
        save_checkpoint(self.folder, self.trainer, self.job.identity, self.seconds)
        save_model(self.folder, self.trainer.parameters)
        seen = loss_by_position(self.trainer.network, self.job.corpus.validation, WINDOWS_SEEN)
        line = {
            "step": self.trainer.step,
            "loss": round(loss, 4),
            "validation": round(seen.mean, 4),
            "bands": {name: round(value, 4) for name, value in seen.bands.items()},
            "seconds": round(self.seconds, 1),
        }
        with (self.folder / "history.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def refuse_used(folder: Path) -> None:
    """CheckpointError when a folder already holds a run, or is no folder."""
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder; give another --out")
    if (folder / CHECKPOINT).exists():
        raise CheckpointError(f"{folder} already holds a run; add --resume, or give another --out")
