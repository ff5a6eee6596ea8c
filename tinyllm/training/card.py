"""A model's card: what it was made from, by which command, and how well it predicts unseen text.

Every figure is worked out here from the weights and the corpus; none is typed in.
"""

import json
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tinyllm.machine import this_machine
from tinyllm.training.evaluation import agreement, loss_by_position
from tinyllm.training.job import Job
from tinyllm.training.network import Network
from tinyllm.training.parameters import Parameters


def versions() -> dict[str, str]:
    """Interpreter, numpy, its BLAS and the machine's kind."""
    machine = this_machine()
    return {
        "python": machine.python,
        "numpy": machine.numpy,
        "blas": machine.blas,
        "machine": f"{platform.machine()}, {machine.cores} processors",
    }


def model_card(job: Job, parameters: Parameters, command: str, seconds: float) -> dict[str, Any]:
    """The contents of card.json. Takes half a minute for a corpus of the library's size."""
    network = Network(parameters)
    loss = loss_by_position(network, job.corpus.validation)
    manifest = job.corpus.manifest
    card: dict[str, Any] = {
        "parameters": parameters.config.n_parameters,
        "command": command,
        "validation": {
            "nats_per_character": loss.mean,
            "by_position": loss.bands,
            "windows": loss.windows,
            "window": parameters.config.context_length,
        },
        "training": {
            "steps": job.plan.steps,
            "characters_seen": job.plan.steps * job.plan.tokens_per_step,
            "seconds": round(seconds, 1),
            "plan": job.plan.to_json(),
            "objective": job.identity["objective"],
        },
        "corpus": {key: manifest[key] for key in ("source", "sha256", "characters", "files")},
        "versions": versions(),
    }
    sample = job.corpus.sample()
    if len(sample) > parameters.config.context_length:
        found = loss_by_position(network, sample)
        card["sample_text"] = {"nats_per_character": found.mean, "windows": found.windows}
    if job.teacher:
        teacher = Network(job.teacher)
        compared = agreement(teacher, network, job.corpus.validation)
        card["agreement_with_teacher"] = asdict(compared)
        if "sample_text" in card:
            card["sample_text"] |= asdict(agreement(teacher, network, sample))
    return card


def trainings_of(folder: Path) -> list[str]:
    """The commands that made a model, in order, as its card tells; none without a card of ours."""
    try:
        trainings = json.loads((folder / "card.json").read_text("utf-8"))["trainings"]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return trainings if isinstance(trainings, list) else []
