"""Drafters side by side on small sizes: what is counted is exact, what is timed is in turn."""

from functools import partial
from itertools import count

import pytest

from tinyllm.config import ModelConfig
from tinyllm.errors import SettingError
from tinyllm.experiments import drafters, pair
from tinyllm.experiments.drafters import (
    TARGETS,
    ClockedDrafter,
    DraftersConfig,
    DraftersRecord,
    entrants,
    watch,
)
from tinyllm.loading import shipped_models
from tinyllm.model import Transformer, random_model
from tinyllm.speculative import (
    Counters,
    EarlyExitDrafter,
    ModelDrafter,
    NGramDrafter,
    speculate,
)
from tinyllm.speculative.drafters import available

SMALL = ModelConfig(n_layer=2, n_head=4, n_kv_head=2, width=32)
CONFIG = DraftersConfig(k=3, tokens=24, temperature=0.0, prompt="x = x = x = x = ")


@pytest.fixture(scope="module")
def model() -> Transformer:
    return random_model(SMALL, seed=1)


def record_of(config: DraftersConfig, model: Transformer, repeats: int) -> DraftersRecord:
    entered = {
        "draft": ModelDrafter(model),
        "ngram": NGramDrafter(),
        "early-exit": EarlyExitDrafter(1),
    }
    record = DraftersRecord(config.temperature)
    assert all(record.take(run) for run in watch(config, model, entered, repeats))
    return record


def test_rows_count_what_the_engine_does(model: Transformer) -> None:
    rows = {row.drafter: row for row in record_of(CONFIG, model, 2).rows}
    assert list(rows) == ["draft", "ngram", "early-exit"]
    expected = speculate(model, NGramDrafter(), CONFIG.prompt, k=3, max_new_tokens=24)
    counters = Counters.of(expected)
    assert rows["ngram"].acceptance_rate == counters.acceptance_rate
    assert rows["ngram"].tokens_per_call == counters.tokens_per_call
    assert rows["ngram"].proposed_per_round == counters.proposed / counters.drafts
    assert rows["draft"].acceptance_rate == 1  # the target itself
    for row in rows.values():
        assert row.runs == row.speedup.count == 2
        assert row.speedup.median > 0
        assert row.identical is True
        assert set(row.row()) >= {"c", "speedup_low", "weights_bytes", "state_bytes"}


def test_a_tree_is_one_and_the_same_drafter_with_siblings(model: Transformer) -> None:
    config = CONFIG.with_(width=3, temperature=1.0)
    drafter = ModelDrafter(random_model(SMALL, seed=2))
    (run,) = watch(config, model, {"draft-tree": drafter}, repeats=1)
    settings = {"max_new_tokens": 24, "temperature": 1.0, "seed": config.seed}
    expected = speculate(model, drafter, config.prompt, k=3, width=3, **settings)
    assert run.counters == Counters.of(expected)


def test_what_a_drafter_holds(model: Transformer) -> None:
    rows = {row.drafter: row for row in record_of(CONFIG, model, 1).rows}
    tokens = len(CONFIG.prompt) + CONFIG.tokens
    assert rows["draft"].weights_bytes == 4 * SMALL.n_parameters
    assert rows["draft"].state_bytes == model.new_cache(capacity=tokens).nbytes
    assert rows["ngram"].weights_bytes == 0 < rows["ngram"].state_bytes
    assert (rows["early-exit"].weights_bytes, rows["early-exit"].state_bytes) == (0, 0)


def test_drafting_is_clocked_inside_the_run(model: Transformer, monkeypatch) -> None:
    """By a clock that moves on by one whenever it is read: a propose and a commit take one each."""
    monkeypatch.setattr(drafters, "perf_counter", count().__next__)
    clocked = ClockedDrafter(NGramDrafter())
    rounds = list(speculate(model, clocked, CONFIG.prompt, k=3, max_new_tokens=24))
    asked = sum(event.position < len(CONFIG.prompt) + 23 for event in rounds)  # the last: a step
    assert clocked.seconds == 2 * asked


def test_a_clock_changes_no_token(model: Transformer) -> None:
    settings = {"max_new_tokens": 24, "temperature": 1.0, "seed": 3}
    plain = list(speculate(model, ModelDrafter(model), "def ", k=3, **settings))
    assert list(speculate(model, ClockedDrafter(ModelDrafter(model)), "def ", **settings, k=3)) == (
        plain
    )


def test_above_temperature_0_nothing_is_called_identical(model: Transformer) -> None:
    rows = record_of(CONFIG.with_(temperature=1.0), model, 1).rows
    assert [row.identical for row in rows] == [None] * 3


def test_every_target_enters_with_every_drafter() -> None:
    assert "target" in TARGETS
    assert set(TARGETS) <= set(shipped_models())
    names = tuple(entrants("target"))
    assert names[: len(available("target"))] == available("target")
    trees = names[len(available("target")) :]
    assert "draft-tree" in trees
    assert all(name.removesuffix("-tree") in names for name in trees)


def test_a_prompt_too_long_is_refused() -> None:
    with pytest.raises(SettingError, match="remove 4 characters"):
        DraftersConfig(prompt="x" * 500, tokens=16)


def test_a_stream_reads_what_a_step_multiplies(model: Transformer) -> None:
    """The sizes of all matrices but the two tables; biases are a few hundredths more."""
    shapes = SMALL.weight_shapes.items()
    tables = ("wte.weight", "wpe.weight")
    matrices = sum(s[0] * s[1] for name, s in shapes if len(s) == 2 and name not in tables)
    read = pair.stream(model).call.func.__self__.size  # the matrix whose product it times
    assert matrices <= read <= 1.05 * matrices


def test_a_pairs_figures_have_the_bounds(model: Transformer) -> None:
    calls = {figure.name: figure for figure in pair.calls(model, turns=3)}
    assert calls["step / stream of the weights"].at_most == 1.35
    assert (calls["5 rows / step"].at_most, calls["9 rows / step"].at_most) == (1.6, 2.0)
    prompts = ["import os"]
    entered = {"draft": ModelDrafter(model), "ngram": NGramDrafter()}
    *cells, best = pair.speeds(model, entered, prompts, ks=(1, 2), repeats=2)
    assert len(cells) == 4
    assert best.spread == max((cell.spread for cell in cells), key=lambda one: one.median)
    assert best.at_least == 1.7
    assert all(cell.at_least is None and cell.spread.count == 2 for cell in cells)


def test_a_run_is_held_against_the_mean_of_plain_before_and_after(monkeypatch) -> None:
    """Two prompts: plain takes 4, 8 and 6, 6, on average 12 together; the runs take 6 and 3."""
    seconds = iter([4, 2, 1, 8, 6, 4, 2, 6])
    monkeypatch.setattr(pair, "_seconds", lambda begin: next(seconds))
    found = pair.against_plain(None, {"slow": partial(list), "fast": partial(list)}, "ab", {}, 1)
    assert {name: spread.median for name, spread in found.items()} == {"slow": 2, "fast": 4}
