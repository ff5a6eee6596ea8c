"""bench kv-heads with small sizes: bytes, bounds and losses are the right ones."""

from dataclasses import replace

import numpy as np
import pytest

from tinyllm import load_model
from tinyllm.config import PRESETS
from tinyllm.errors import ConfigError
from tinyllm.experiments import attention_step, head_quality, kv_heads
from tinyllm.experiments.attention_step import AttentionTime
from tinyllm.experiments.head_quality import SCRATCH, UPTRAINED, Variant, VariantTime
from tinyllm.experiments.prompts import validation_text
from tinyllm.loading import MODELS
from tinyllm.model import random_model
from tinyllm.tokenizer import CharTokenizer
from tinyllm.training.checkpoint import load_parameters
from tinyllm.training.evaluation import loss_by_position
from tinyllm.training.network import Network

TARGET = PRESETS["target"]


def test_bytes_are_those_of_keys_and_values() -> None:
    times = attention_step.attention_times((4, 2, 1), 33, 2, query_heads=4, head_dim=8)
    rows = attention_step.attention_rows(times)
    assert [row.kv_heads for row in rows] == [4, 2, 1]
    assert [row.cache_bytes for row in rows] == [2 * heads * 33 * 8 * 4 for heads in (4, 2, 1)]
    assert all(row.step_seconds.count == 2 for row in rows)
    assert (rows[0].share.low, rows[0].share.high) == (1.0, 1.0)
    assert [row.met for row in rows] == [None] * 3  # the bound is that of one head of eight


def test_the_articles_layer_has_the_articles_bytes() -> None:
    *_, last = attention_step.attention_times(turns=1)
    assert (last.kv_heads, last.cache_bytes) == (1, 4 * 2**20)


def test_kv_heads_must_divide_the_query_heads() -> None:
    with pytest.raises(ConfigError, match="must divide n_head"):
        next(attention_step.attention_times((3,), context=8))


@pytest.mark.parametrize(("seconds", "met"), [(0.29, True), (0.31, False)])
def test_one_head_of_eight_is_held_to_its_bound(seconds: float, met: bool) -> None:
    times = [AttentionTime(1, 8, 800, 1.0), AttentionTime(1, 1, 100, seconds)]
    part = AttentionTime(2, 8, 800, 50.0)  # a turn that is not whole
    most, one = attention_step.attention_rows([*times, part])
    assert most.step_seconds.median == 1.0
    assert one.share.median == seconds
    assert one.at_most == attention_step.AT_MOST
    assert one.met is met
    assert attention_step.attention_rows([]) == []


def test_the_shipped_variants() -> None:
    known = head_quality.variants()
    assert known[0] == head_quality.Variant(
        "target", TARGET, SCRATCH, pytest.approx(1.1504, abs=1e-4)
    )
    trained = {(one.config.n_kv_head, one.training) for one in known}
    assert trained == {(4, SCRATCH), (2, SCRATCH), (2, UPTRAINED), (1, SCRATCH), (1, UPTRAINED)}
    for one in known:
        assert one.bytes_per_token == load_model(one.name).new_cache(capacity=1).nbytes


def test_losses_are_those_of_training() -> None:
    known = [one for one in head_quality.variants() if one.name in ("target", "target-kv1")]
    models = [load_model(one.name) for one in known]
    times = head_quality.variant_times(models, validation_text(), windows=3)
    rows = head_quality.quality_rows(known, times)
    text = np.array(CharTokenizer().encode(validation_text()))
    for row in rows:
        network = Network(load_parameters(MODELS / row.model))
        assert row.loss == pytest.approx(loss_by_position(network, text, most=3).mean, abs=1e-5)
        assert (row.windows, row.step_seconds.count) == (3, 3)
    assert rows[0].above == rows[0].above_error == 0
    assert rows[1].above == pytest.approx(rows[1].loss - rows[0].loss)


def test_losses_are_compared_window_by_window() -> None:
    known = [
        Variant("all", TARGET, SCRATCH, 1.0),
        Variant("one", replace(TARGET, n_kv_head=1), UPTRAINED, 1.1),
    ]
    losses = {"all": (1.0, 3.0, 9.0), "one": (1.1, 3.3)}  # the third window is not whole
    times = [
        VariantTime(name, window, loss, 0.001)
        for name, found in losses.items()
        for window, loss in enumerate(found)
    ]
    first, second = head_quality.quality_rows(known, times)
    assert (first.loss, first.windows) == (2.0, 2)
    assert second.above == pytest.approx(0.2)
    assert second.above_error == pytest.approx(0.1)  # sqrt(0.02) / sqrt(2)
    assert head_quality.quality_rows(known, []) == []
    assert head_quality.best_of_fewest([first, second]) is second


def test_both_measurements_take_turns_and_add_up() -> None:
    config = PRESETS["target"]
    models = [random_model(config, 1), random_model(replace(config, n_kv_head=1), 2)]
    known = [
        Variant(name, model.config, SCRATCH, 1.0)
        for name, model in zip(("all", "one"), models, strict=True)
    ]
    for one, model in zip(known, models, strict=True):
        model.name = one.name
    record = kv_heads.HeadsRecord(known)
    turns = list(kv_heads.watch(models, context=16, turns=3, windows=2))
    assert [len(turn.attention) for turn in turns] == [4, 4, 4]
    assert [len(turn.quality) for turn in turns] == [2, 2, 0]
    assert all(record.take(turn) for turn in turns)
    assert [row.step_seconds.count for row in record.attention] == [3] * 4
    assert [row.windows for row in record.quality] == [2, 2]
