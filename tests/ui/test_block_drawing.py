"""Figures, legend and sentences of the Paging and Prefill pages, without a page."""

from dataclasses import replace

import pytest

from tests.ui.test_drawing import valid
from tinyllm.config import ModelConfig
from tinyllm.experiments import paging_record
from tinyllm.experiments.paging import PagingConfig
from tinyllm.experiments.prefill import PrefillConfig
from tinyllm.experiments.prefix import PrefillRecord, watch
from tinyllm.model import random_model
from tinyllm.ui import block_map, paging, prefill

SMALL = ModelConfig(n_layer=2, n_head=4, n_kv_head=2, width=32)
FIXED = PagingConfig(lengths="fixed", same=100, block_size=64)


@pytest.fixture(scope="module")
def served() -> paging_record.PagingRecord:
    record = paging_record.PagingRecord(10)
    for event in paging_record.watch(FIXED):
        record.take(event)
    return record


@pytest.fixture(scope="module")
def measured() -> PrefillRecord:
    config = PrefillConfig(prefix=30, own=4)
    record = PrefillRecord(config.prefix)
    for row in watch(config, random_model(SMALL)):
        record.take(row)
    return record


@pytest.mark.parametrize("size", [1, 64, 128])
def test_the_chart_of_waste(served: paging_record.PagingRecord, size: int) -> None:
    figure = paging.waste_figure(served.rows, size)
    assert len(valid(figure).data) == 3
    slab, blocks, chosen = figure["data"]
    assert slab["y"] == [100 * (1 - 100 / 2048)] * 2
    assert blocks["x"] == list(range(1, 129))
    assert blocks["y"][99] == 0  # a block of 100 is exactly a request
    assert (chosen["x"], chosen["y"]) == ([size], [blocks["y"][size - 1]])


def test_sentences_about_paging(served: paging_record.PagingRecord) -> None:
    sentence = paging.finding(served, FIXED)
    assert f"{1 - 100 / 2048:.1%}" in sentence
    assert f"{1 - 100 / 128:.2%}" in sentence
    assert f"up to {served.most_running} sequences" in sentence
    assert "slabs of 2,048" in paging.waste_chart(served, FIXED)
    words = paging.map_in_words(served, FIXED)
    assert "Map of 128 blocks" in words
    assert served.last is not None
    assert f"{len(served.last.running)} sequences run" in paging.status(served, FIXED)
    lines = paging.formula(served, FIXED)
    assert r"\frac{100,000}{128,000}" in lines[1]
    assert r"\frac{100,000}{2,048,000}" in lines[2]


def test_nothing_served_yet() -> None:
    record = paging_record.PagingRecord(1)
    record.take(next(paging_record.watch(FIXED)))
    assert record.last is None
    assert "0%" in paging.finding(record, FIXED)


def test_every_kind_of_block_has_a_name() -> None:
    legend = block_map.legend_html()
    for kind in ("used", "part", "shared", "cached", "blank"):
        assert f'class="b b-{kind}"' in legend


def test_the_charts_of_prefill(measured: PrefillRecord) -> None:
    assert len(valid(prefill.prefill_figure(measured.prefills)).data) == 2
    assert len(valid(prefill.prefix_figure(measured.prefixes, 4)).data) == 3
    valid(prefill.prefill_figure([]))
    valid(prefill.prefix_figure([], 4))


def test_sentences_about_prefill(measured: PrefillRecord) -> None:
    assert "448 tokens one by one" in prefill.finding(measured)
    assert "known prefix of 30 tokens" in prefill.reused(measured)
    assert "448 tokens take" in prefill.filled(measured)
    assert "30 + 4 = 34" in prefill.formula(measured)[1]
    assert "4 + 14 = 18" in prefill.formula(measured)[1]  # 16 of 30 are in a whole block
    first = PrefillRecord(30, [], measured.prefixes)
    assert prefill.finding(first) == prefill.reused(first)


@pytest.mark.parametrize(("difference", "says"), [(0.0, "bit for bit"), (2e-6, "at most 2.0e-06")])
def test_equal_logits_are_called_so(measured: PrefillRecord, difference: float, says: str) -> None:
    row = replace(measured.reuse, copy_difference=difference, blocks_difference=0.0)
    assert says in prefill.finding(PrefillRecord(30, measured.prefills, [row]))
