"""`python -m tinyllm train`: the arguments, and from them a job, a run and a card."""

import argparse
import dataclasses
import json
import shlex
from collections.abc import Callable
from functools import partial

from threadpoolctl import threadpool_limits

from tinyllm import options
from tinyllm.config import PRESETS
from tinyllm.errors import CorpusError, SettingError
from tinyllm.loading import find_model
from tinyllm.training import heads_run
from tinyllm.training.card import model_card, trainings_of
from tinyllm.training.checkpoint import load_parameters, read_state, write_text
from tinyllm.training.corpus import Corpus, library_corpus, text_corpus
from tinyllm.training.job import Job
from tinyllm.training.objectives import DIVERGENCE_UNTIL, Distillation
from tinyllm.training.optimiser import OPTIMISERS
from tinyllm.training.run import Run, refuse_used, seconds_per_step, trial_folder
from tinyllm.training.schedule import TOKENS_AT_ONCE, Plan
from tinyllm.training.uptraining import converted

MOST_MINUTES, MOST_STEPS, MOST_CHARACTERS = 100_000, 1_000_000_000, 2**20
MOST_RATE = 0.1  # beyond it Adam only diverges
OVERHEAD = 1.02  # checkpoints and looks at the validation text take about a fiftieth


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `train`."""
    add = parser.add_argument
    add("--preset", choices=list(PRESETS), default="target", help="model shape")
    path, model, share = options.path, options.model, options.real(0, 1)
    add("--out", type=path, required=True, metavar="DIR", help="folder of the run and the model")
    length = parser.add_mutually_exclusive_group()
    minutes = options.real(0, MOST_MINUTES, above=True)
    length.add_argument("--minutes", type=minutes, help="measure the speed, then plan that long")
    steps = options.whole(1, MOST_STEPS)
    length.add_argument("--steps", type=steps, help="an exact number of steps")
    add("--resume", action="store_true", help="go on with the run in --out")
    add("--text", type=path, metavar="FILE", help="learn this text, not the standard library")
    add("--seed", type=options.whole(0), default=0, help="the one source of chance")
    rate = options.real(0, MOST_RATE, above=True)
    add("--lr", type=rate, default=4e-3, help="peak learning rate (default 0.004)")
    add("--decay", type=share, default=0.05, help="weight decay of the matrices (default 0.05)")
    batch = options.whole(TOKENS_AT_ONCE, MOST_CHARACTERS, TOKENS_AT_ONCE)
    add("--batch", type=batch, default=2048, help="characters per step (default 2048)")
    which = "a folder, or the name of a shipped model"
    add("--micro-batch", type=batch, default=TOKENS_AT_ONCE, help="of them at once (default 1024)")
    add("--optimiser", choices=list(OPTIMISERS), default="adamw", help="default adamw")
    add("--beta1", type=options.real(0, 0.999), default=0.9, help="momentum (default 0.9)")
    add("--medusa-of", type=model, metavar="MODEL", help=f"heads that draft for it: {which}")
    add("--init-from", type=model, metavar="MODEL", help=f"begin with these weights: {which}")
    add("--distil-from", type=model, metavar="MODEL", help=f"learn its probabilities: {which}")
    add(
        "--distil-on",
        type=options.whole(4096),
        metavar="CHARACTERS",
        help="of the text, evenly spaced: a large teacher takes long to read all of it",
    )
    add(
        "--divergence-until",
        type=share,
        default=DIVERGENCE_UNTIL,
        metavar="SHARE",
        help="share of a distillation's steps on the divergence, before the rejection rate",
    )


def run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    """Train, telling `say` what happens; 0 when finished, 130 when interrupted."""
    with threadpool_limits(1):
        return _run(arguments, say)


def _run(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    if arguments.medusa_of is not None:
        return _run_heads(arguments, say)
    folder = arguments.out
    if not arguments.resume:
        refuse_used(folder)
    job = _job(arguments)
    if arguments.steps is None and not arguments.resume:
        with trial_folder(folder):
            speed = seconds_per_step(job, folder)
        steps = max(1, int(arguments.minutes * 60 / (speed * OVERHEAD)))
        say(f"{speed * 1e3:.1f} ms a step: {steps} steps in {arguments.minutes:g} minutes")
        job = dataclasses.replace(job, plan=dataclasses.replace(job.plan, steps=steps))
    work = Run(job, folder, arguments.resume)
    if not work.train():
        again = command_line(arguments, job.plan.steps)
        say(f"Stopped after step {work.trainer.step} of {job.plan.steps}. To go on:")
        say(f"  {again} --resume")
        return 130
    _write_card(arguments, work, say)
    return 0


def _run_heads(arguments: argparse.Namespace, say: Callable[[str], object]) -> int:
    model_only = (arguments.resume, arguments.init_from, arguments.distil_from)
    if any(model_only) or arguments.optimiser != "adamw":
        raise SettingError(
            "--medusa-of trains new heads, in minutes, on what MODEL itself says: leave out "
            "--resume, --init-from, --distil-from and --optimiser"
        )
    folder, target = arguments.out, find_model(arguments.medusa_of)
    heads_run.refuse_used(folder)
    plan = heads_run.one_length(_plan(arguments))
    job = heads_run.HeadsJob(target, plan, _corpus(arguments))
    if arguments.steps is None:
        speed = job.seconds_per_step()
        steps = max(1, int(arguments.minutes * 60 / (speed * OVERHEAD)))
        say(f"{speed * 1e3:.1f} ms a step: {steps} steps in {arguments.minutes:g} minutes")
        job = dataclasses.replace(job, plan=dataclasses.replace(plan, steps=steps))
    command = partial(command_line, arguments)
    return heads_run.train(job, folder, command, trainings_of(target), say)


def _write_card(arguments: argparse.Namespace, work: Run, say: Callable[[str], object]) -> None:
    command = command_line(arguments, work.job.plan.steps)
    card = model_card(work.job, work.trainer.parameters, command, work.seconds)
    led_here = [
        earlier
        for name in (arguments.init_from, arguments.distil_from)
        if name is not None
        for earlier in trainings_of(find_model(name))
    ]
    card["trainings"] = list(dict.fromkeys([*led_here, command]))
    write_text(work.folder / "card.json", json.dumps(card, indent=2) + "\n")
    nats = card["validation"]["nats_per_character"]
    say(f"{work.folder}: {nats:.3f} nats a character on text the model has not seen")


def _job(arguments: argparse.Namespace) -> Job:
    """The job that the arguments describe; its number of steps is provisional with --minutes."""
    config, plan = PRESETS[arguments.preset], _plan(arguments)
    if arguments.distil_from:
        plan = dataclasses.replace(
            plan, lengths=(config.context_length,), shares_first=(1.0,), shares_last=(1.0,)
        )
    return Job(
        config=config,
        plan=plan,
        corpus=_corpus(arguments),
        initial=converted(load_parameters(find_model(arguments.init_from)), config)
        if arguments.init_from
        else None,
        teacher=load_parameters(find_model(arguments.distil_from))
        if arguments.distil_from
        else None,
        distillation=Distillation(arguments.divergence_until),
        taught=arguments.distil_on,
    )


def _plan(arguments: argparse.Namespace) -> Plan:
    """What the arguments say of the steps; 1,000 of them until --minutes have been measured."""
    if arguments.steps is not None:
        steps = arguments.steps
    elif arguments.resume:
        steps = int(read_state(arguments.out)["identity"]["plan"]["steps"])
    elif arguments.minutes is None:
        raise SettingError("give --minutes or --steps, or --resume to go on with a run")
    else:
        steps = 1000
    return Plan(
        steps=steps,
        seed=arguments.seed,
        peak_rate=arguments.lr,
        decay=arguments.decay,
        tokens_per_step=arguments.batch,
        tokens_at_once=arguments.micro_batch,
        optimiser=arguments.optimiser,
        beta1=arguments.beta1,
    )


def _corpus(arguments: argparse.Namespace) -> Corpus:
    """The text to learn; what is wrong with it is told under the option's name."""
    if arguments.text is None:
        return library_corpus()
    try:
        return text_corpus(arguments.text)
    except CorpusError as error:
        raise CorpusError(f"--text: {error}") from error


def command_line(arguments: argparse.Namespace, steps: int) -> str:
    """The command that makes the same weights again: what was not left at its default."""
    shape = [] if arguments.medusa_of else ["--preset", arguments.preset]
    words = ["python -m tinyllm train", *shape, "--steps", str(steps)]
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    said_already = {"preset", "steps", "minutes", "resume", "out"}
    for option in parser._actions:  # all there are, so that none added later can be forgotten
        value = getattr(arguments, option.dest)
        if option.dest not in said_already and value != option.default:
            words += [option.option_strings[0], shlex.quote(str(value))]
    return " ".join([*words, "--out", shlex.quote(str(arguments.out))])
