"""Waste by way of reserving, and the simulated stream of requests: exact counts, kept promises."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.cache.block_table import BlockTable
from tinyllm.cache.blocks import BlockPool
from tinyllm.errors import MemoryPlanError, SettingError, TinyllmError
from tinyllm.experiments import paging, paging_record, serving
from tinyllm.experiments.paging import PagingConfig
from tinyllm.experiments.settings import problem_of
from tinyllm.memory.lengths import LogNormal, Observed, Uniform, fixed


def test_waste_of_three_requests() -> None:
    slab, sixteen, seven = paging.rows(Observed((1, 16, 17)), longest=20, sizes=(16, 7))
    assert slab == paging.WasteRow("preallocate", 20, 3, 34, 60, 1 - 34 / 60)
    assert sixteen == paging.WasteRow("blocks", 16, 3, 34, 64, 1 - 34 / 64)
    assert seven == paging.WasteRow("blocks", 7, 3, 34, 7 + 21 + 21, 1 - 34 / 49)


def test_waste_as_in_the_article() -> None:
    """1,000 lengths of 50..2,047: what is expected, within four of a mean's deviations."""
    rows = {row.block_size: row for row in paging.rows()}
    assert list(rows) == [2048, *range(1, 129)]
    mean = (50 + 2047) / 2
    deviation = (1998**2 / 12) ** 0.5 / 1000**0.5
    assert rows[2048].waste == pytest.approx(1 - mean / 2048, abs=4 * deviation / 2048)
    assert rows[1].waste == 0
    for size in (16, 32):  # the last block is empty by (size - 1) / 2 on average
        expected = (size - 1) / 2 / (mean + (size - 1) / 2)
        assert rows[size].waste == pytest.approx(expected, rel=0.12)
    assert list(paging.rows()) == list(paging.rows())
    assert list(paging.rows(seed=1)) != list(paging.rows())


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=8), size=st.integers(1, 128))
def test_waste_is_what_a_pool_takes(lengths: list[int], size: int) -> None:
    pool = BlockPool(sum(-(-length // size) for length in lengths), size)
    for number, length in enumerate(lengths):
        BlockTable(pool).reserve(length)
        assert pool.used <= pool.n_blocks, number
    assert pool.free == 0
    row = list(paging.rows(Observed(tuple(lengths)), sizes=(size,)))[1]
    assert row.reserved == pool.used * size
    assert row.tokens == sum(lengths)


def test_observed_lengths_are_taken_as_they_are() -> None:
    assert paging.draw(Observed((5, 3, 5)), requests=1000).tolist() == [5, 3, 5]
    assert paging.draw(fixed(7), requests=3).tolist() == [7, 7, 7]
    assert len(paging.draw(LogNormal(40, 90, 100), requests=50)) == 50


def test_settings_choose_the_lengths() -> None:
    assert PagingConfig().distribution == Uniform(50, 2047)
    assert PagingConfig(lengths="fixed", same=9).distribution == fixed(9)
    assert PagingConfig(lengths="log-normal").distribution == LogNormal(400, 1800, 2048)
    pasted = PagingConfig(lengths="yours", pasted="prompt,answer\n10,5\n7\n")
    assert pasted.distribution == Observed((15, 7))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"block_size": 0}, "block_size must lie between 1 and 128, not at 0"),
        ({"block_size": 129}, "between 1 and 128"),
        ({"block_size": 2.5}, "block_size must be a number"),
        ({"lengths": "poisson"}, "must be one of uniform, fixed, log-normal, yours"),
        ({"shortest": 900, "longest": 800}, "the longest length"),
        ({"lengths": "log-normal", "median": 500, "p95": 400}, "95th percentile"),
        ({"lengths": "yours", "pasted": ""}, "from 1 to 100,000 lengths, not 0"),
        ({"lengths": "yours", "pasted": "12\nmany"}, "line 2 must be one whole number"),
        ({"lengths": "yours", "pasted": "1,2,3"}, "line 1 must be one whole number"),
        ({"lengths": "yours", "pasted": "0"}, "at least 1 token"),
        ({"lengths": "yours", "pasted": "2049"}, "at most 2048 tokens"),
        ({"lengths": "yours", "pasted": "4\n-4"}, "line 2 must be"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(TinyllmError) as refusal:
        PagingConfig(**settings)
    assert says in str(refusal.value)
    assert isinstance(refusal.value, SettingError | MemoryPlanError)


def test_a_distribution_that_is_not_chosen_may_be_wrong() -> None:
    assert PagingConfig(pasted="nonsense", median=500, p95=400).distribution == Uniform(50, 2047)


def test_an_address_of_other_settings() -> None:
    assert problem_of("block_size", ["32"], PagingConfig) is None
    assert problem_of("shortest", ["2048"], PagingConfig) is None  # whatever longest is
    assert "between 1 and 128" in str(problem_of("block_size", ["999"], PagingConfig))
    assert "must be one of" in str(problem_of("lengths", ["any"], PagingConfig))


@pytest.mark.parametrize("size", [1, 3, 16, 128])
@pytest.mark.parametrize("lengths", [Uniform(1, 300), fixed(40), Observed((1, 500))])
def test_a_stream_keeps_the_pool_whole(size: int, lengths: Any) -> None:
    room = 1024
    steps = list(serving.serve(lengths, block_size=size, shared=20, room=room, requests=25, seed=3))
    assert [one.step for one in steps] == sorted({one.step for one in steps})
    for event in steps:
        held = Counter(block for one in event.running for block in one.blocks)
        assert event.holders == tuple(held[block] for block in range(room // size))
        assert all(event.holders[block] == 0 for block in event.cached)
        numbers = [one.number for one in event.running]
        assert len(set(numbers)) == len(numbers)
        for one in event.running:
            assert len(one.blocks) == -(-one.tokens // size)
        assert event.reused_tokens <= event.prompt_tokens
        row = paging_record.counts(event)
        assert row["blocks_used"] + row["blocks_cached"] + row["blocks_blank"] == room // size
        cells = paging_record.block_map(event, size)
        assert sum(one > 0 for one in cells.tokens) == row["blocks_used"] + row["blocks_cached"]
        assert [owner >= 0 for owner in cells.owners] == [held > 0 for held in cells.holders]
        unshared = all(held <= 1 for held in event.holders)
        if unshared and not event.cached:
            assert sum(cells.tokens) == sum(one.tokens for one in event.running)
    last = steps[-1]
    assert last.waiting == 0
    # Everyone was admitted: 25 requests, some with a second answer.
    assert 25 <= last.served + len(last.running) <= 50


def test_a_stream_is_the_same_for_the_same_seed() -> None:
    one, two, other = (
        list(serving.serve(Uniform(5, 90), room=512, requests=9, seed=seed)) for seed in (4, 4, 5)
    )
    assert one == two != other


def test_requests_of_a_kind_find_their_prefix() -> None:
    """All begin alike and come one after the other: all but the first find whole blocks."""
    shared = list(serving.serve(fixed(64), block_size=8, shared=32, room=4096, requests=30))[-1]
    assert shared.prompt_tokens == 30 * 32
    # A whole prompt is shared: three of its four blocks, as the last token is computed.
    assert shared.reused_tokens == (30 - serving.KINDS) * 24
    alone = list(serving.serve(fixed(64), block_size=8, shared=0, room=4096, requests=30))[-1]
    assert alone.reused_tokens == 0


def test_a_full_pool_preempts_the_youngest_and_serves_it_later() -> None:
    steps = list(serving.serve(fixed(100), block_size=4, shared=0, room=256, requests=12, seed=1))
    assert steps[-1].preemptions > 0
    assert any(one.event == "preempted" for one in steps)
    assert any(one.waiting > 0 for one in steps)
    for event in steps:  # the oldest keep their places
        numbers = [one.number for one in event.running]
        assert numbers == sorted(numbers)


def test_what_a_page_watches() -> None:
    config = PagingConfig(lengths="fixed", same=100, block_size=64)
    record = paging_record.PagingRecord(paging_record.frame_steps(config.distribution))
    worth = [record.take(event) for event in paging_record.watch(config)]
    assert len(record.rows) == 129
    assert record.row(64).block_size == 64
    assert worth[:2] == [False, True]  # the rows in one event, then the first step
    assert 2 <= sum(worth) <= 2 * paging_record.FRAMES
    assert record.last is not None
    assert len(record.steps) == len(worth) - 1
    assert record.most_running == max(row["running"] for row in record.steps)


def test_frames_of_long_and_short_requests() -> None:
    assert paging_record.frame_steps(fixed(1)) == 1
    assert paging_record.frame_steps(fixed(2048)) > paging_record.frame_steps(fixed(500)) > 1
    assert serving.mean_length(Observed((2, 4))) == 3
    assert isinstance(serving.mean_length(fixed(3)), float)
    assert np.isfinite(serving.mean_length(Uniform(50, 2047)))
