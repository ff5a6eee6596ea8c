"""Requests of real lengths in a vLLM pool: against closed forms, and what must hold."""

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan
from tinyllm.memory.concurrency import held_blocks, requests_that_fit
from tinyllm.memory.engines import vllm
from tinyllm.memory.lengths import (
    LogNormal,
    Observed,
    Uniform,
    Workload,
    fixed,
    parse_lengths,
    parse_totals,
)
from tinyllm.memory.presets import preset


def pool_of(name, gibibytes=10, length=32_768, **settings):
    return vllm.pool(
        plan(preset(name).config), vllm.Settings(length, gibibytes * 2**30, **settings)
    )


LLAMA = pool_of("meta-llama/Meta-Llama-3.1-8B")  # 5,120 blocks of 16 tokens


def test_requests_of_one_length_have_a_closed_form() -> None:
    found = requests_that_fit(LLAMA, Workload(fixed(1_000), fixed(24)))
    assert found.mean == found.in_95_percent == found.closed_form == 5_119 // 64
    assert found.at_full_length == 2.5
    assert found.too_long == 0


def test_uniform_lengths_fill_the_pool_on_average() -> None:
    """Blocks of 16 to 1,600 tokens: 50.5 on average, and the last request that does not fit."""
    found = requests_that_fit(LLAMA, Workload(Uniform(1, 1_600), fixed(0)))
    assert found.mean == pytest.approx(5_119 / 50.5, rel=0.02)
    assert found.in_95_percent < found.mean
    assert found.closed_form is None
    assert found.fills == 500


def test_a_seed_gives_the_same_figures() -> None:
    workload = Workload(LogNormal(800, 4_000, 16_000), Uniform(16, 512))
    first, again, other = (requests_that_fit(LLAMA, workload, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first.mean == pytest.approx(other.mean, rel=0.05)


def test_a_shared_prefix_is_held_once() -> None:
    """1,000 tokens of prefix are 62 whole blocks; the rest of each request is its own."""
    found = requests_that_fit(LLAMA, Workload(fixed(100), fixed(100), shared_prefix=1_000))
    assert found.closed_form == (5_119 - 62) // (75 - 62)
    without = requests_that_fit(LLAMA, Workload(fixed(1_100), fixed(100)))
    assert found.closed_form > 5 * without.closed_form


def test_a_running_request_holds_less_than_it_reserves() -> None:
    """A window and the block it starts in, not the tokens in flight; states as they are."""
    gemma = pool_of("gemma-3-27b-it")
    assert held_blocks(gemma, 32_768) == 2_048 + 6 * (-(-1_023 // 16) + 1)
    assert held_blocks(gemma, 100) == 7 * 7
    assert held_blocks(gemma, 32_768) < gemma.blocks_per_request
    qwen = pool_of("Qwen3.5-27B")
    assert held_blocks(qwen, 784) == 1 + 3 * 2


def test_more_than_all_draws_fit_in_a_huge_pool() -> None:
    vast = pool_of("meta-llama/Meta-Llama-3.1-8B", gibibytes=1_024)
    workload = Workload(fixed(16), fixed(0))
    assert requests_that_fit(vast, workload, max_num_seqs=256).mean == 256
    found = requests_that_fit(vast, workload)
    assert found.mean == found.closed_form == vast.num_blocks - 1


def test_what_is_longer_than_the_model_is_counted_as_cut() -> None:
    found = requests_that_fit(LLAMA, Workload(Observed((100, 50_000)), fixed(0)))
    assert found.too_long == pytest.approx(0.5, abs=0.02)
    assert 0 < found.mean < 5_119


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4_000), st.integers(0, 4_000), st.integers(0, 2_000))
def test_the_fill_is_the_closed_form(prompt, output, prefix):
    found = requests_that_fit(LLAMA, Workload(fixed(prompt), fixed(output), prefix))
    assert found.mean == found.closed_form


def test_log_normal_lengths_have_their_median_and_percentile() -> None:
    generator = random.Random(0)
    lengths = LogNormal(1_000, 8_000, 100_000)
    drawn = [lengths.draw(generator) for _ in range(20_000)]
    assert statistics.median(drawn) == pytest.approx(1_000, rel=0.05)
    assert sum(value > 8_000 for value in drawn) / len(drawn) == pytest.approx(0.05, abs=0.01)
    assert max(drawn) <= 100_000
    assert math.log(statistics.geometric_mean(drawn)) == pytest.approx(math.log(1_000), rel=0.02)


def test_lengths_from_csv() -> None:
    prompts, outputs = parse_lengths("prompt,output\n100, 20\n\n300;40\n5\t6\n")
    assert prompts == Observed((100, 300, 5))
    assert outputs == Observed((20, 40, 6))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "from 1 to 100,000 lengths, not 0"),
        ("a,b", "from 1 to 100,000 lengths, not 0"),
        ("1,2\n3", "line 2 must be two whole numbers, prompt and output, not '3'"),
        ("1,2\n3,-4", "line 2 must be"),
        ("1,2\n3,99999999999999999", "line 2 must be"),
        ("1,2\n" * 100_002, "at most 100,000 lines"),
    ],
)
def test_damaged_csv_is_refused(text, message):
    with pytest.raises(MemoryPlanError, match=message):
        parse_lengths(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(5, 4), "the longest length must be a whole number from 5"),
        (lambda: fixed(-1), "the shortest length must be"),
        (lambda: LogNormal(0, 1, 2), "the median length must be"),
        (lambda: LogNormal(10, 5, 20), "the 95th percentile must be a whole number from 10"),
        (lambda: LogNormal(10, 50, 20), "the cap must be a whole number from 50"),
        (lambda: Workload(fixed(1), fixed(1), -1), "shared_prefix must be"),
    ],
)
def test_absurd_lengths_are_refused(make, message):
    with pytest.raises(MemoryPlanError, match=message):
        make()


def test_totals_from_csv() -> None:
    assert parse_totals("tokens\n100\n\n 20 \n").tokens == (100, 20)
    assert parse_totals("prompt,output\n100, 20\n300;40\n5\t6\n7\n").tokens == (120, 340, 11, 7)
    for text, says in (("1\n2,3,4", "line 2"), ("1\nx", "line 2"), ("", "from 1 to")):
        with pytest.raises(MemoryPlanError, match=says):
            parse_totals(text)
