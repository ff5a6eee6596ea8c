"""What formats cost: rows of a small model with exact bytes, and a loss worked out again."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tinyllm.cache import CACHE_DTYPES
from tinyllm.config import PRESETS, ModelConfig
from tinyllm.experiments import kv_dtype, kv_dtype_record, memory, outliers, timing
from tinyllm.experiments.prompts import validation_prompts, validation_text
from tinyllm.experiments.rows import flat
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.timing import Spread
from tinyllm.generation import generate
from tinyllm.model import Transformer, random_weights

SMALL = ModelConfig(n_layer=2, n_head=2, n_kv_head=1, width=32)


@pytest.fixture(scope="module")
def model() -> Transformer:
    """Weights large enough that texts differ from prompt to prompt and coarse caches show."""
    weights = {name: 6 * array for name, array in random_weights(SMALL, seed=1).items()}
    return Transformer(SMALL, weights)


@pytest.fixture(scope="module")
def record(model: Transformer) -> kv_dtype_record.FormatRecord:
    found = kv_dtype_record.FormatRecord()
    for event in kv_dtype.watch(RunConfig(kv_dtype="int4", temperature=0.0, tokens=24), model):
        found.take(event)
    return found


def test_every_format_is_measured_its_own_first(record: kv_dtype_record.FormatRecord) -> None:
    others = [dtype for dtype in CACHE_DTYPES if dtype not in ("float32", "int4")]
    assert list(record.formats) == ["float32", "int4", *others]
    assert record.progress is None
    table = kv_dtype_record.formats_table(record)
    assert [row["dtype"] for row in table] == list(CACHE_DTYPES)
    assert all(row["agree"] and row["nbytes"] == row["formula_bytes"] for row in table)


def test_float32_is_no_different_from_itself(record: kv_dtype_record.FormatRecord) -> None:
    row = record.formats["float32"]
    assert (row.identical, row.prompts, row.first_divergence) == (8, 8, 96.0)
    assert (row.max_logit_difference, row.loss_increase, row.loss_error) == (0.0, 0.0, 0.0)


def test_bytes_are_exact(record: kv_dtype_record.FormatRecord) -> None:
    """L = 2, G = 1, D = 16: 112 tokens of a vector of keys and one of values."""
    found = {dtype: row.nbytes for dtype, row in record.formats.items()}
    newest, coded = 96 * 16 * 2, 3
    assert found == {
        "float32": 4 * 112 * 64,
        "float16": 4 * 112 * 32,
        "bfloat16": 4 * 112 * 32,
        "fp8_e4m3": 4 * 112 * 16,
        "fp8_e5m2": 4 * 112 * 16,
        "int8": 4 * 112 * 18,
        "int8_channel": 2 * (112 * 18 + coded * (32 * 16 + 32) + newest),
        "int4": 4 * 112 * 10,
        "int4_g8": 4 * 112 * 12,
        "int4_channel": 2 * (112 * 10 + coded * (32 * 8 + 32) + newest),
    }
    assert record.formats["int8"].bytes_per_token == 4 * 18


def test_first_divergence_is_that_of_whole_texts(
    model: Transformer, record: kv_dtype_record.FormatRecord
) -> None:
    row, places = record.formats["int4"], []
    for prompt in validation_prompts():
        texts = []
        for dtype in ("float32", "int4"):
            made = generate(model, prompt, max_new_tokens=96, kv_dtype=dtype)
            texts.append([token.id for token in made])
        pairs = enumerate(zip(*texts, strict=True))
        places.append(next((place for place, (a, b) in pairs if a != b), 96))
    assert row.first_divergence == np.mean(places)
    assert row.identical == places.count(96) < 8


def test_coarser_formats_are_further_away(record: kv_dtype_record.FormatRecord) -> None:
    apart = {dtype: row.max_logit_difference for dtype, row in record.formats.items()}
    assert 0 < apart["float16"] < apart["bfloat16"] < apart["fp8_e4m3"] < apart["fp8_e5m2"]
    assert 0 < apart["int8"] < apart["int4_g8"] < apart["int4"]


def test_the_loss_is_that_of_predictions_made_one_by_one(
    model: Transformer, record: kv_dtype_record.FormatRecord
) -> None:
    text = model.tokenizer.encode(validation_text())
    starts = np.linspace(0, len(text) - 513, kv_dtype.WINDOWS).astype(int)
    losses = []
    for start in starts[:2]:
        cache, window = model.new_cache("int8"), text[start : start + 513]
        for token, following in pairwise(window):
            logits = model.forward([token], cache)[0].astype(np.float64)
            losses.append(np.log(np.exp(logits).sum()) - logits[following])
    windows = np.array([text[start : start + 513] for start in starts[:2]])
    found = [kv_dtype._loss(model, window, "int8") for window in windows]
    assert np.mean(found) == pytest.approx(np.mean(losses), abs=2e-4)


def test_progress_leads_to_each_row(model: Transformer) -> None:
    events = list(kv_dtype.measure(model, ["float16"]))
    assert [type(event).__name__ for event in events] == ["Progress"] * 32 + ["FormatRow"]
    parts = [event.part for event in events if isinstance(event, timing.Progress)]
    assert parts == 2 * list(range(16))
    row = events[-1]
    assert isinstance(row, kv_dtype_record.FormatRow)
    assert row.step_seconds.count == row.reference_step_seconds.count == kv_dtype.STEP_TURNS
    assert isinstance(flat(row)["step_seconds_low"], float)


def test_texts_are_those_of_the_run(
    record: kv_dtype_record.FormatRecord, model: Transformer
) -> None:
    assert record.texts is not None
    assert len(record.texts.reference) == len(record.texts.text) == 24
    same = record.texts.same
    assert record.texts.reference[:same] == record.texts.text[:same]
    *steps, equal = kv_dtype.texts(RunConfig(tokens=24), model)
    assert len(steps) == 2 * 24
    assert isinstance(equal, kv_dtype_record.Texts)
    assert (equal.text, equal.same) == (equal.reference, 24)
    assert replace(equal, text="x" + equal.text[1:], reference="y" + equal.text[1:]).same == 0


def test_a_large_channel_spoils_vectors_by_token_and_not_by_channel(model: Transformer) -> None:
    found = {(row.dtype, row.factor): row for row in outliers.rows(model)}
    assert len(found) == len(outliers.FACTORS) * len(outliers.DTYPES)
    for bits in ("int8", "int4"):
        by_token = [found[bits, factor].others_error for factor in outliers.FACTORS]
        assert by_token == sorted(by_token)
        assert by_token[-1] > 10 * by_token[0]
        by_channel = [found[f"{bits}_channel", factor].others_error for factor in outliers.FACTORS]
        assert by_channel == [by_channel[0]] * len(outliers.FACTORS)  # nothing to do with others
        assert by_channel[0] < by_token[-1] / 5
    assert found["int4", 100].others_error > 0.9  # all but the large channel round to zero
    times = [found["int8", factor].times_median for factor in outliers.FACTORS]
    assert times == pytest.approx([times[0] * factor for factor in outliers.FACTORS], rel=1e-4)


def test_what_was_measured_stays_until_it_is_measured_anew(
    record: kv_dtype_record.FormatRecord,
) -> None:
    again = record.restarted()
    assert again.texts is None
    assert again.formats == record.formats
    assert again.formats is not record.formats


def test_every_cache_of_every_model_is_as_large_as_the_formula_says() -> None:
    rows = list(memory.rows())
    assert len(rows) == len(PRESETS) * len(CACHE_DTYPES)
    assert all(row.agree for row in rows)
    sizes = {(row.model, row.dtype): row.nbytes for row in rows}
    # 2 L G S (D bits / 8 + scales), S = 512, D = 24.
    assert sizes["target", "float32"] == 2 * 4 * 4 * 512 * 96 == 1_572_864
    assert sizes["target-kv1", "int4"] == 2 * 4 * 1 * 512 * 14
    assert sizes["target-kv2", "int4_g8"] == 2 * 4 * 2 * 512 * 18
    assert sizes["draft", "int8_channel"] == 2 * (512 * 26 + 16 * (32 * 24 + 48) + 96 * 48)
    small = list(memory.rows({"target": PRESETS["target"]}, 112))
    assert {row.dtype: row.nbytes for row in small}["int8"] == 93_184


def test_a_size_that_does_not_agree_says_so() -> None:
    assert not memory.CacheSize(formula=10, nbytes=10, arrays=9).agree


def test_steps_are_measured_in_turn(model: Transformer) -> None:
    tokens = list(range(96)) * 6
    step, reference = kv_dtype._step_times(model, "fp8_e4m3", tokens[:512], 40)
    assert isinstance(step, Spread)
    assert 0 < step.low <= step.median <= step.high
    assert reference.count == step.count
