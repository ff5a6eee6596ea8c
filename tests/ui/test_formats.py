"""Charts, texts and sentences of the KV dtype page, without a browser."""

from dataclasses import replace

import pytest

from tests.ui.test_drawing import valid
from tinyllm.cache import CACHE_DTYPES
from tinyllm.config import PRESETS
from tinyllm.experiments import kv_dtype_record, memory, timing
from tinyllm.experiments.outliers import DTYPES, FACTORS, OutlierRow
from tinyllm.experiments.timing import Spread
from tinyllm.ui import formats, formulas, outliers

ROW = kv_dtype_record.FormatRow(
    dtype="float32",
    bits=32,
    keys_by_channel=False,
    tokens=112,
    nbytes=344_064,
    formula_bytes=344_064,
    agree=True,
    bytes_per_token=3072.0,
    prompts=8,
    identical=8,
    first_divergence=96.0,
    max_logit_difference=0.0,
    loss=1.0954,
    loss_increase=0.0,
    loss_error=0.0,
    step_seconds=Spread(1.5e-4, 1.4e-4, 1.6e-4, 40),
    reference_step_seconds=Spread(1.5e-4, 1.4e-4, 1.6e-4, 40),
)
INT4 = replace(
    ROW,
    dtype="int4",
    nbytes=50_176,
    bytes_per_token=448.0,
    identical=2,
    loss_increase=0.0212,
    loss_error=0.003,
    step_seconds=Spread(5e-4, 4e-4, 6e-4, 40),
)
RECORD = kv_dtype_record.FormatRecord(formats={"float32": ROW, "int4": INT4})


def outlier_rows(own_channel: float) -> list[OutlierRow]:
    return [
        OutlierRow(
            dtype,
            factor,
            1.5 * factor,
            0.01,
            own_channel if dtype.endswith("_channel") else min(0.08 * factor, 0.97),
        )
        for factor in FACTORS
        for dtype in DTYPES
    ]


def test_every_format_is_one_point() -> None:
    record = kv_dtype_record.FormatRecord(
        formats={dtype: replace(ROW, dtype=dtype) for dtype in CACHE_DTYPES}
    )
    drawn = valid(formats.quality_figure(record, "int8", PRESETS["target"]))
    names = [text.strip() for trace in drawn.data if trace.text for text in trace.text]
    assert sorted(names) == sorted(CACHE_DTYPES)
    assert len(drawn.data[-1].x) == 1  # the ring


def test_the_ring_is_around_the_chosen_one_and_nothing_is_needed_to_draw() -> None:
    ring = valid(formats.quality_figure(RECORD, "int4", PRESETS["target"])).data[-1]
    assert (ring.x[0], ring.y[0]) == (448.0, 0.0212)
    assert not valid(formats.quality_figure(RECORD, "int8", PRESETS["target"])).data[-1].x
    valid(formats.quality_figure(kv_dtype_record.FormatRecord(), "int4", PRESETS["target"]))


@pytest.mark.parametrize(
    ("chosen", "family"),
    [("float32", 3), ("int4_channel", 3), ("int8", 2), ("int8_channel", 2)],
)
def test_a_large_channel_is_shown_for_the_chosen_bits(chosen: str, family: int) -> None:
    drawn = valid(outliers.figure(outlier_rows(0.075), chosen))
    assert len(drawn.data) == family
    assert all(len(trace.x) == len(FACTORS) for trace in drawn.data)
    assert len({trace.line.dash for trace in drawn.data}) == family


def test_sentences_tell_a_cost_from_none() -> None:
    assert "costs 0.0212 nats on a loss of 1.095; 2 of 8" in formats.notice(RECORD, "int4")
    assert "50,176 bytes, 15% of float32" in formats.notice(RECORD, "int4")
    within = {"float32": ROW, "int4": replace(INT4, loss_increase=0.0059)}
    assert "no loss that can be measured" in formats.notice(
        kv_dtype_record.FormatRecord(formats=within), "int4"
    )
    assert "held against: 344,064 bytes" in formats.notice(RECORD, "float32")
    assert "being measured" in formats.notice(RECORD, "int8")
    assert "being measured" in formats.notice(kv_dtype_record.FormatRecord(), "float32")


def test_tiles_are_dashes_until_they_are_measured() -> None:
    assert [value for _name, value in formats.tiles(RECORD, "int4")] == [
        "448",
        "+0.0212 nats",
        "2 of 8",
    ]
    assert {value for _name, value in formats.tiles(RECORD, "int8")} == {"-"}


def test_what_is_going_on_is_said() -> None:
    record = kv_dtype_record.FormatRecord(progress=timing.Progress("int8", 4, 20))
    assert formats.progress(record) == "Measuring int8: 5 of 20."
    assert formats.progress(RECORD)


def test_texts_are_marked_from_their_first_difference_and_escaped() -> None:
    html = formats.texts_html(kv_dtype_record.Texts("a<b\ncd", "a<b\nxy"), "int4")
    assert "<code>a&lt;b⏎<mark>cd</mark></code>" in html
    assert "<code>a&lt;b⏎<mark>xy</mark></code>" in html
    assert "<mark>" not in formats.texts_html(kv_dtype_record.Texts("ab", "ab"), "int4")


def test_whether_this_model_gains_by_channel_is_told_from_its_own_errors() -> None:
    alike = outliers.notice(outlier_rows(0.075), "int4")
    assert "error of 97%" in alike
    assert "newest keys, which are floats" in alike
    assert "1.5 times its head" in alike
    assert "costs 8.0% against 4.0%" in outliers.notice(outlier_rows(0.04), "int4")


def test_charts_in_words() -> None:
    assert "int4: 448, +0.0212" in formats.quality_chart(RECORD)
    assert "at 100 times: int4: 97.0%" in outliers.chart(outlier_rows(0.075), "int4")
    assert formats.quality_chart(kv_dtype_record.FormatRecord()).endswith("still to be measured.")


@pytest.mark.parametrize("dtype", CACHE_DTYPES)
def test_the_formula_of_every_format_ends_in_its_bytes(dtype: str) -> None:
    config = PRESETS["target"]
    size = memory.cache_size(config, dtype, 112)
    lines = formulas.cache_bytes(config, 112, dtype, size)
    assert all(f"= {size.formula:,}" in line for line in lines[-3:])
    if dtype == "int8":
        assert "93,184" in lines[1]
    if dtype == "int4_channel":  # keys and values of one head, worked out by hand
        assert lines[2].endswith("= 5,904")
        assert lines[4].endswith("= 1,568")
        assert "(5,904 + 1,568) = 119,552" in lines[5]
