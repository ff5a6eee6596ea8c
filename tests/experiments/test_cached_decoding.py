"""bench kv-cache with a small model: the right rows, and only whole generations counted."""

import pytest

from tinyllm.config import ModelConfig
from tinyllm.errors import ContextOverflowError
from tinyllm.experiments import cached_decoding as cached
from tinyllm.experiments.decode import EQUALITY_TOKENS
from tinyllm.experiments.flops import matrix_flops
from tinyllm.experiments.kv_cache import CacheRecord, generated_tokens, positions, watch
from tinyllm.experiments.settings import RunConfig
from tinyllm.model import Transformer, random_model

SMALL = ModelConfig(n_layer=2, n_head=4, n_kv_head=2, width=32)


@pytest.fixture(scope="module")
def model() -> Transformer:
    return random_model(SMALL, seed=1)


def test_every_row_comes_in_order(model: Transformer) -> None:
    equality, *steps, whole = cached.rows(model, positions=(2, 16, 40), turns=3, tokens=6)
    assert isinstance(equality, cached.EqualityRow)
    assert equality.same_tokens
    assert equality.tokens == EQUALITY_TOKENS
    assert 0 <= equality.largest_difference < 1e-5
    assert [step.T for step in steps] == [2, 16, 40]
    for step in steps:
        assert step.cached_seconds.count == step.uncached_seconds.count == step.ratio.count == 3
        assert step.cached_mflop == matrix_flops(SMALL, 1, step.T - 1) / 1e6
        assert step.uncached_mflop == matrix_flops(SMALL, step.T) / 1e6
        assert step.cached_mflop < step.engine_mflop < step.uncached_mflop
    assert isinstance(whole, cached.GenerationRow)
    assert whole.tokens == 6
    assert whole.cached_seconds.count == cached.REPEATS


@pytest.mark.parametrize("position", [1, 513])
def test_a_position_the_model_has_not_is_refused(model: Transformer, position: int) -> None:
    with pytest.raises(ContextOverflowError, match=f"must lie in 2..512, not at {position}"):
        cached.step(model, position)


def test_only_whole_repeats_count() -> None:
    def times(way: str, repeat: int, seconds: list[float]) -> list[cached.TokenTime]:
        return [cached.TokenTime(way, repeat, one) for one in seconds]

    first = times("uncached", 0, [3.0, 5.0]) + times("cached", 0, [1.0, 1.0])
    part = times("uncached", 1, [9.0, 9.0]) + times("cached", 1, [9.0])
    row = cached.generation_row(first + part, tokens=2)
    assert row is not None
    assert (row.uncached_seconds.median, row.cached_seconds.median, row.ratio.median) == (
        8.0,
        2.0,
        4.0,
    )
    assert row.cached_seconds.count == 1
    assert cached.generation_row(part, tokens=2) is None
    assert cached.generation_row([]) is None


def test_the_page_watches_steps_and_then_generations(model: Transformer) -> None:
    config = RunConfig(prompt="x" * 504, tokens=8, temperature=0.0)
    record = CacheRecord(generated_tokens(config))
    worth = [record.take(event) for event in watch(config, model)]
    assert record.tokens == 8
    assert len(record.rows) == len(positions(config))
    assert sum(worth) == len(record.rows) + 1  # the equality is drawn too
    assert record.equality is not None
    assert record.equality.same_tokens
    assert len(record.times) == 8 * 2 * cached.REPEATS
    assert record.generation is not None
    assert record.generation.tokens == 8


def test_the_articles_positions_are_among_the_pages() -> None:
    measured = positions(RunConfig(prompt=cached.PROMPT))
    assert {31, 63, 127, 255} <= set(measured)  # the prompt is longer than 16
    assert measured[-2:] != [510, 511]
    assert measured[-1] == 511
