"""A run resumes bit for bit, learns a sentence by heart, updates as AdamW and Muon are defined."""

import dataclasses
import json
import math
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tinyllm.config import ModelConfig
from tinyllm.errors import CheckpointError, ConfigError, CorpusError, SettingError, WeightsError
from tinyllm.training.checkpoint import (
    CHECKPOINT,
    load_parameters,
    restore,
    save_checkpoint,
    save_model,
)
from tinyllm.training.corpus import Corpus
from tinyllm.training.job import Job, fresh_generator
from tinyllm.training.optimiser import AdamW, Muon, orthogonalised
from tinyllm.training.parameters import Parameters, initialise
from tinyllm.training.schedule import Plan


@pytest.fixture
def job(tiny_config: ModelConfig, tiny_plan: Plan, tiny_corpus: Corpus) -> Job:
    return Job(tiny_config, tiny_plan, tiny_corpus)


@pytest.fixture
def taught_job(job: Job) -> Job:
    plan = dataclasses.replace(job.plan, lengths=(32,), shares_first=(1.0,), shares_last=(1.0,))
    teacher = initialise(job.config, fresh_generator(5))
    return dataclasses.replace(job, plan=plan, teacher=teacher)


@pytest.fixture
def muon_job(job: Job) -> Job:
    return dataclasses.replace(job, plan=dataclasses.replace(job.plan, optimiser="muon"))


@pytest.mark.parametrize("kind", ["job", "taught_job", "muon_job"])
@pytest.mark.parametrize("cut", [1, 5, 11])
def test_resumes_bit_for_bit(
    kind: str, cut: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    job: Job = request.getfixturevalue(kind)
    straight = job.trainer(tmp_path)
    losses = [done.loss for done in straight.run()]

    first = job.trainer(tmp_path)
    before = [done.loss for done in islice(first.run(), cut)]
    save_checkpoint(tmp_path, first, job.identity, seconds=3.5)
    second = job.trainer(tmp_path)
    assert restore(tmp_path, second, job.identity) == 3.5
    after = [done.loss for done in second.run()]

    assert before + after == losses
    for name, there in (
        ("weights", straight.parameters.vector),
        ("first moment", straight.optimiser.first),
        ("second moment", straight.optimiser.second),
    ):
        here = {
            "weights": second.parameters.vector,
            "first moment": second.optimiser.first,
            "second moment": second.optimiser.second,
        }[name]
        assert here.tobytes() == there.tobytes(), name
    assert second.generator.bit_generator.state == straight.generator.bit_generator.state


def test_another_seed_is_another_run(job: Job, tmp_path: Path) -> None:
    other = dataclasses.replace(job, plan=dataclasses.replace(job.plan, seed=1))
    weights = [one.trainer(tmp_path).parameters.vector for one in (job, other)]
    assert not np.array_equal(*weights)


def test_checkpoint_of_another_run_is_refused(job: Job, tmp_path: Path) -> None:
    save_checkpoint(tmp_path, job.trainer(tmp_path), job.identity, 0.0)
    longer = dataclasses.replace(
        job,
        plan=dataclasses.replace(job.plan, steps=13, seed=4),
        corpus=dataclasses.replace(job.corpus, manifest={"sha256": "other"}),
    )
    with pytest.raises(CheckpointError) as caught:
        restore(tmp_path, longer.trainer(tmp_path), longer.identity)
    for part in ("plan.steps is 12 there and 13 here", "plan.seed", "corpus is 'tiny' there"):
        assert part in str(caught.value)
    assert "peak_rate" not in str(caught.value)


def test_damaged_or_missing_checkpoint_is_named(job: Job, tmp_path: Path) -> None:
    trainer = job.trainer(tmp_path)
    with pytest.raises(CheckpointError, match="cannot read a checkpoint"):
        restore(tmp_path, trainer, job.identity)
    (tmp_path / CHECKPOINT).write_bytes(b"not one")
    with pytest.raises(CheckpointError, match="cannot read a checkpoint"):
        restore(tmp_path, trainer, job.identity)


def test_learns_a_sentence_by_heart(job: Job, tmp_path: Path) -> None:
    plan = dataclasses.replace(job.plan, steps=250)
    events = list(dataclasses.replace(job, plan=plan).trainer(tmp_path).run())
    assert events[0].loss == pytest.approx(math.log(96), abs=0.3)
    assert np.mean([event.loss for event in events[-20:]]) < 0.25
    assert {event.length for event in events} == {16, 32}
    assert {event.characters for event in events} == {128}
    assert [event.step for event in events] == list(range(1, 251))


def test_views_share_the_vector(tiny_config: ModelConfig) -> None:
    parameters = Parameters(tiny_config)
    assert parameters.vector.size == tiny_config.n_parameters
    for number, view in enumerate(parameters.views.values()):
        assert np.shares_memory(view, parameters.vector)
        view[...] = number + 1
    assert np.all(parameters.vector > 0)
    assert {name: view.shape for name, view in parameters.views.items()} == (
        tiny_config.weight_shapes
    )


def test_adamw_is_its_definition(tiny_config: ModelConfig, generator: np.random.Generator) -> None:
    plan = Plan(steps=40, clip=1e9, decay=0.1)
    parameters = initialise(tiny_config, generator)
    optimiser = AdamW(parameters, plan)
    weights = parameters.vector.astype(np.float64)
    decayed = parameters.matrix_mask()
    assert decayed.sum() == sum(v.size for v in parameters.views.values() if v.ndim == 2)
    m, v = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(5):
        gradient = generator.normal(size=weights.size).astype(np.float32)
        m = plan.beta1 * m + (1 - plan.beta1) * gradient
        v = plan.beta2 * v + (1 - plan.beta2) * np.square(gradient, dtype=np.float64)
        hat_m, hat_v = m / (1 - plan.beta1 ** (step + 1)), v / (1 - plan.beta2 ** (step + 1))
        rate = plan.rate(step)
        weights -= rate * plan.decay * decayed * weights
        weights -= rate * hat_m / (np.sqrt(hat_v) + 1e-8)
        assert optimiser.update(gradient.copy(), step) == pytest.approx(
            float(np.linalg.norm(gradient)), rel=1e-5
        )
    np.testing.assert_allclose(parameters.vector, weights, atol=2e-6)


@pytest.mark.parametrize("shape", [(64, 32), (32, 64), (48, 48)])
def test_orthogonalised_keeps_directions_and_evens_their_sizes(
    shape: tuple[int, int], generator: np.random.Generator
) -> None:
    sizes = np.geomspace(1.0, 0.02, min(shape))
    left = np.linalg.qr(generator.normal(size=(shape[0], len(sizes))))[0]
    right = np.linalg.qr(generator.normal(size=(shape[1], len(sizes))))[0]
    turned = orthogonalised(left * sizes @ right.T)
    found = left.T @ turned @ right
    np.testing.assert_allclose(found, np.diag(np.diag(found)), atol=1e-9)
    assert np.all((np.diag(found) > 0.65) & (np.diag(found) < 1.25))


def test_muon_turns_block_matrices_and_leaves_the_rest_to_adamw(
    tiny_config: ModelConfig, generator: np.random.Generator
) -> None:
    plan = Plan(steps=40, clip=1e9, decay=0.1, optimiser="muon", beta1=0.95)
    start = initialise(tiny_config, generator)
    both = []
    gradients = [generator.normal(size=start.vector.size).astype(np.float32) for _ in range(3)]
    for kind in (AdamW, Muon):
        parameters = Parameters(tiny_config)
        parameters.assign(start.views)
        optimiser = kind(parameters, plan)
        for step, gradient in enumerate(gradients):
            optimiser.update(gradient.copy(), step)
        both.append(parameters)
    momentum = np.zeros(start.vector.size)
    weights = start.vector.astype(np.float64)
    for step, gradient in enumerate(gradients):
        momentum = 0.95 * momentum + 0.05 * gradient
        ahead = start.named(0.95 * momentum + 0.05 * gradient)
        for name, view in start.named(weights).items():
            if name.startswith("h.") and view.ndim == 2:
                view *= 1 - plan.rate(step) * plan.decay
                size = 0.2 * max(view.shape) ** 0.5
                view -= plan.rate(step) * size * orthogonalised(ahead[name])
    for name, view in both[1].views.items():
        turned = name.startswith("h.") and view.ndim == 2
        wanted = start.named(weights)[name] if turned else both[0][name]
        np.testing.assert_allclose(view, wanted, atol=2e-6, err_msg=name)


def test_gradient_is_clipped_by_its_norm(tiny_config: ModelConfig) -> None:
    first = []
    for size in (1.0, 50.0):
        parameters = Parameters(tiny_config)
        optimiser = AdamW(parameters, Plan(steps=10, clip=1.0))
        gradient = np.full(parameters.vector.size, size, np.float32)
        optimiser.update(gradient, 0)
        first.append(optimiser.first.copy())
    np.testing.assert_allclose(first[0], first[1], rtol=1e-5)
    assert np.linalg.norm(first[0]) == pytest.approx(0.1, rel=1e-4)


def test_rate_climbs_then_falls_to_its_floor() -> None:
    plan = Plan(steps=1000, peak_rate=1.0, warm_up=0.1, final_fraction=0.05)
    rates = [plan.rate(step) for step in range(1000)]
    assert rates[0] == pytest.approx(0.01)
    assert rates[99] == max(rates) == pytest.approx(1.0)
    assert rates == sorted(rates[:100]) + sorted(rates[100:], reverse=True)
    assert rates[-1] == pytest.approx(0.05, abs=1e-3)


def test_longer_windows_come_later() -> None:
    plan = Plan(steps=100)
    assert plan.shares(0) == pytest.approx(plan.shares_first)
    assert plan.shares(100) == pytest.approx(plan.shares_last)
    assert plan.shares(50).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"peak_rate": 0.0}, "learning rate must be above 0"),
        ({"peak_rate": math.nan}, "learning rate must be above 0"),
        ({"tokens_per_step": 1000}, "multiple of tokens at once"),
        ({"lengths": (100,)}, "context length 100"),
    ],
)
def test_plan_names_what_is_wrong(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        Plan(**({"steps": 5} | wrong))


def test_job_names_what_does_not_fit(job: Job) -> None:
    short = dataclasses.replace(job.corpus, validation=job.corpus.validation[:20])
    with pytest.raises(CorpusError, match="a window of 32 does not fit"):
        dataclasses.replace(job, corpus=short)
    foreign = Parameters(dataclasses.replace(job.config, vocab_size=5))
    with pytest.raises(ConfigError, match="they must be the same"):
        dataclasses.replace(job, teacher=foreign)


def test_model_files_read_back(job: Job, tmp_path: Path) -> None:
    parameters = initialise(job.config, fresh_generator(0))
    save_model(tmp_path / "model", parameters)
    again = load_parameters(tmp_path / "model")
    assert again.config == job.config
    assert again.vector.tobytes() == parameters.vector.tobytes()
    assert not list((tmp_path / "model").glob("*.partial"))
    config = json.loads((tmp_path / "model/config.json").read_text("utf-8"))
    assert config["n_embd"] == 16
    (tmp_path / "model/model.safetensors").write_bytes(b"\0" * 4)
    with pytest.raises(WeightsError, match="cannot read"):
        load_parameters(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda w: w.pop("wpe.weight"), "lack wpe.weight"),
        (lambda w: w.update({"extra": np.zeros(1)}), "hold extra"),
        (lambda w: w.update({"ln_f.bias": np.zeros(3)}), r"ln_f.bias has shape \(3,\)"),
    ],
)
def test_weights_that_do_not_fit_are_named(change, named: str, tiny_config: ModelConfig) -> None:
    weights = dict(Parameters(tiny_config).views)
    change(weights)
    with pytest.raises(WeightsError, match=named):
        Parameters(tiny_config).assign(weights)
