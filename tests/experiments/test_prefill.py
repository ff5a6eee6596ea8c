"""Prefill and prefix reuse: both ways end in the same cache, and rows say what was shared."""

import pytest

from tinyllm.cache import PAGED_DTYPES
from tinyllm.config import ModelConfig
from tinyllm.errors import SettingError
from tinyllm.experiments import prefill, prefix, rows
from tinyllm.experiments.prefill import PrefillConfig
from tinyllm.experiments.timing import Progress
from tinyllm.model import Transformer, random_model

SMALL = ModelConfig(n_layer=2, n_head=4, n_kv_head=2, width=32)


@pytest.fixture(scope="module")
def model() -> Transformer:
    return random_model(SMALL, seed=1)


@pytest.mark.parametrize("dtype", PAGED_DTYPES)
def test_rows_of_prefill(model: Transformer, dtype: str) -> None:
    rows = list(prefill.rows(model, (1, 5, 24), turns=3, kv_dtype=dtype))
    assert [row.tokens for row in rows] == [1, 5, 24]
    for row in rows:
        assert row.at_once_seconds.count == row.one_by_one_seconds.count == 3
        assert row.ratio == row.one_by_one_seconds.median / row.at_once_seconds.median
        # A rounded cache rounds what each way computes, and they differ in the last bit.
        assert row.logit_difference <= (5e-6 if dtype == "float32" else 5e-3)
    assert rows[0].logit_difference == 0


@pytest.mark.parametrize("dtype", PAGED_DTYPES)
@pytest.mark.parametrize(
    ("length", "size", "found"), [(0, 16, 0), (48, 16, 48), (50, 16, 48), (15, 16, 0), (7, 1, 7)]
)
def test_rows_of_a_prefix(
    model: Transformer, length: int, size: int, found: int, dtype: str
) -> None:
    (row,) = prefix.rows(model, (length,), own=9, turns=2, kv_dtype=dtype, block_size=size)
    assert (row.prefix, row.own, row.found) == (length, 9, found)
    assert row.recompute_seconds.count == row.copy_seconds.count == row.blocks_seconds.count == 2
    bound = 5e-6 if dtype == "float32" else 5e-3
    assert row.copy_difference <= bound
    assert row.blocks_difference <= bound
    per_token = model.new_cache(dtype, capacity=1).nbytes
    assert row.copied_bytes == length * per_token
    blocks = -(-(length + 9) // size) - found // size
    assert row.new_block_bytes == blocks * size * per_token


def test_the_article_s_row_is_the_default(model: Transformer) -> None:
    (row,) = prefix.rows(model, turns=1)
    assert (row.prefix, row.own, row.found) == (384, 64, 384)
    assert prefill.SIZES == (64, 256)


def test_later_turns_find_the_prefix_only(model: Transformer, monkeypatch) -> None:
    """Else the own tokens of an earlier turn would be found too and nothing left to time."""
    fed: list[int] = []
    forward = Transformer.forward

    def counted(self, tokens, cache=None, rows=None):
        fed.append(len(tokens))
        return forward(self, tokens, cache, rows)

    monkeypatch.setattr(Transformer, "forward", counted)
    list(prefix.rows(model, (32,), own=40, turns=3, block_size=8))
    # The prefix twice; four turns of three ways; then the three compared.
    assert fed == [32, 32, *[72, 40, 40] * 4, 72, 40, 40]


def test_what_a_page_watches(model: Transformer, monkeypatch) -> None:
    monkeypatch.setattr(prefix, "MORE_SIZES", (2,))
    monkeypatch.setattr(prefix, "SIZES", (4, 3))
    config = PrefillConfig(prefix=96, own=250)
    record = prefix.PrefillRecord(config.prefix)
    for event in prefix.watch(config, model):
        assert record.take(event) != isinstance(event, Progress)
        if record.prefills or record.prefixes:
            assert record.reuse.prefix == 96  # measured first
    assert [row.tokens for row in record.prefills] == [2, 3, 4]
    assert [row.prefix for row in record.prefixes] == [0, 96, 192]  # what fits 512 positions
    assert record.fill is record.prefills[-1]
    for row in (record.fill, record.reuse):
        assert all(isinstance(value, int | float) for value in rows.flat(row).values())


def test_both_parts_fit_the_positions() -> None:
    assert PrefillConfig(prefix=480, own=32).own == 32
    with pytest.raises(SettingError) as refusal:
        PrefillConfig(prefix=480, own=33)
    assert "513 tokens together" in str(refusal.value)
    assert "lower own to 32 or prefix to 479" in str(refusal.value)
    assert PrefillConfig(kv_heads=2).target == "target-kv2"
