"""The paged cache under the engine: a dense cache's logits bit for bit, whatever is shared."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tinyllm.cache import CACHE_DTYPES, PAGED_DTYPES, PagedCache, PagedPool
from tinyllm.config import ModelConfig
from tinyllm.errors import CacheOverflowError, SettingError
from tinyllm.model import random_model

SMALL = ModelConfig(n_layer=2, n_head=4, n_kv_head=2, width=32, context_length=160)
MODEL = random_model(SMALL, seed=4)
TOKENS = st.integers(0, 95)


@pytest.mark.parametrize("dtype", PAGED_DTYPES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_logits_are_those_of_a_dense_cache(dtype: str, data: st.DataObject) -> None:
    """Prefill, verify, step and rewind, with another sequence's blocks in between."""
    size = data.draw(st.integers(1, 128))
    pool = MODEL.new_pool(-(-160 // size) + 40, size, dtype)
    paged, dense, other = pool.new_cache(), MODEL.new_cache(dtype), pool.new_cache()
    for _ in range(data.draw(st.integers(1, 6))):
        new = data.draw(st.lists(TOKENS, min_size=1, max_size=20))
        assert np.array_equal(MODEL.forward(new, paged), MODEL.forward(new, dense))
        if other.length < 40:
            MODEL.forward(new[:1], other)
        length = data.draw(st.integers(0, paged.length))
        paged.truncate(length)
        dense.truncate(length)


@pytest.mark.parametrize("size", range(1, 129))
def test_every_block_size(size: int) -> None:
    tokens = [7 * i % 96 for i in range(140)]
    pool = MODEL.new_pool(-(-140 // size), size)
    paged, dense = pool.new_cache(), MODEL.new_cache()
    for start, stop in ((0, 131), (131, 132), (132, 140)):
        new = tokens[start:stop]
        assert np.array_equal(MODEL.forward(new, paged), MODEL.forward(new, dense))
    assert len(paged.table.blocks) == -(-140 // size)
    assert pool.blocks.free == 0


def test_the_trained_target(target) -> None:
    tokens = target.tokenizer.encode("def read(self, size=-1):\n" * 12)
    paged, dense = target.new_pool(32).new_cache(), target.new_cache()
    for new in (tokens[:250], tokens[250:251], tokens[251:256]):
        assert np.array_equal(target.forward(new, paged), target.forward(new, dense))


@pytest.mark.parametrize("dtype", PAGED_DTYPES)
def test_a_shared_prefix_gives_the_logits_of_a_copied_one(dtype: str) -> None:
    pool = MODEL.new_pool(30, 8, dtype)
    prefix, own = [3 * i % 96 for i in range(64)], [5, 6, 7]
    first = pool.new_cache(prefix)
    MODEL.forward(prefix, first)
    second, dense = pool.new_cache(prefix + own), MODEL.new_cache(dtype)
    assert (second.length, pool.blocks.used) == (64, 8)
    MODEL.forward(prefix, dense)
    assert np.array_equal(MODEL.forward(own, second), MODEL.forward(own, dense))
    assert pool.blocks.used == 9


@pytest.mark.parametrize("dtype", PAGED_DTYPES)
def test_a_fork_and_its_origin_go_their_own_ways(dtype: str) -> None:
    pool = MODEL.new_pool(30, 8, dtype)
    start, ways = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], ([20, 21], [30], [40, 41, 42])
    origin = pool.new_cache()
    MODEL.forward(start, origin)
    caches = [origin.fork(), origin.fork(), origin]
    for cache, way in zip(caches, ways, strict=True):
        dense = MODEL.new_cache(dtype)
        MODEL.forward(start, dense)
        assert np.array_equal(MODEL.forward(way, cache), MODEL.forward(way, dense))
    for cache, way in zip(caches, ways, strict=True):  # nobody wrote into another's block
        dense = MODEL.new_cache(dtype)
        MODEL.forward(start, dense)
        MODEL.forward(way, dense)
        assert np.array_equal(MODEL.forward([50], cache), MODEL.forward([50], dense))


@pytest.mark.parametrize("dtype", PAGED_DTYPES)
def test_bytes_are_those_of_the_blocks(dtype: str) -> None:
    pool = MODEL.new_pool(20, 8, dtype)
    assert pool.nbytes == MODEL.new_cache(dtype, 160).nbytes
    cache = pool.new_cache()
    assert (cache.nbytes, cache.used_nbytes, cache.capacity) == (0, 0, 160)
    MODEL.forward(list(range(17)), cache)
    assert cache.nbytes == MODEL.new_cache(dtype, 24).nbytes
    assert cache.used_nbytes == MODEL.new_cache(dtype, 17).nbytes
    keys, values = cache.layers[1]
    assert 2 * (keys.nbytes + values.nbytes) == cache.nbytes
    assert keys.arrays.keys() == MODEL.new_cache(dtype).layers[0][0].arrays.keys()


def test_an_overflow_changes_nothing() -> None:
    pool = MODEL.new_pool(4, 8)
    cache = pool.new_cache()
    MODEL.forward(list(range(20)), cache)
    held = [keys.read(20).copy() for keys, _ in cache.layers]
    with pytest.raises(CacheOverflowError, match="2 more blocks of 8 tokens are needed"):
        MODEL.forward([1] * 13, cache)
    assert (cache.length, pool.blocks.used) == (20, 3)
    for before, (keys, _) in zip(held, cache.layers, strict=True):
        assert np.array_equal(before, keys.read(20))
    MODEL.forward([1] * 12, cache)
    assert pool.blocks.free == 0


def test_a_pool_of_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(SettingError, match="choose float32"):
        MODEL.new_pool(4, dtype="int3")


def test_keys_that_share_scales_over_positions_are_refused() -> None:
    refused = set(CACHE_DTYPES) - set(PAGED_DTYPES)
    assert refused == {"int8_channel", "int4_channel"}
    for dtype in refused:
        with pytest.raises(SettingError, match="32 of its keys share their scales; choose float32"):
            MODEL.new_pool(4, dtype=dtype)


class Serving(RuleBasedStateMachine):
    """Sequences that come, share, grow, fork, rewind and go, against lists of their tokens.

    A token is stored as its own number, so what a cache reads back is what was written to it.
    """

    sequences = Bundle("sequences")
    few_tokens = st.lists(st.integers(1, 2), min_size=1, max_size=9)  # so that many begin alike

    def __init__(self) -> None:
        super().__init__()
        config = ModelConfig(n_layer=1, n_head=1, n_kv_head=1, width=2)
        self.pool = PagedPool(config, 12, 3, "float32", np.dtype("float32"))
        self.held: list[tuple[PagedCache, list[int]]] = []

    def write(self, cache: PagedCache, tokens: list[int]) -> None:
        before = list(self.pool.blocks.holders), cache.length, list(cache.table.blocks)
        try:
            cache.reserve(len(tokens))
        except CacheOverflowError:
            after = list(self.pool.blocks.holders), cache.length, list(cache.table.blocks)
            assert after == before
            return
        vectors = np.repeat(np.array(tokens, np.float32), 2).reshape(-1, 1, 2)
        for storage in cache.layers[0]:
            storage.write(cache.length, vectors)
        cache.commit(tokens)
        next(text for one, text in self.held if one is cache).extend(tokens)

    @rule(target=sequences, tokens=few_tokens)
    def arrive(self, tokens: list[int]) -> PagedCache:
        cache = self.pool.new_cache(tokens)
        assert cache.length < len(tokens)
        self.held.append((cache, tokens[: cache.length]))
        self.write(cache, tokens[cache.length :])
        return cache

    @rule(cache=sequences, tokens=few_tokens)
    def grow(self, cache: PagedCache, tokens: list[int]) -> None:
        self.write(cache, tokens)

    @rule(target=sequences, cache=sequences)
    def fork(self, cache: PagedCache) -> PagedCache:
        text = next(text for one, text in self.held if one is cache)
        twin = cache.fork()
        self.held.append((twin, text.copy()))
        return twin

    @rule(cache=sequences, share=st.floats(0, 1))
    def rewind(self, cache: PagedCache, share: float) -> None:
        text = next(text for one, text in self.held if one is cache)
        length = int(share * len(text))
        cache.truncate(length)
        del text[length:]

    @rule(cache=consumes(sequences))
    def leave(self, cache: PagedCache) -> None:
        cache.truncate(0)
        self.held = [one for one in self.held if one[0] is not cache]

    @invariant()
    def every_block_is_free_or_used(self) -> None:
        blocks = self.pool.blocks
        assert blocks.free + blocks.used == 12
        tables = [block for cache, _ in self.held for block in cache.table.blocks]
        assert blocks.holders == [tables.count(block) for block in range(12)]
        assert all(blocks.holders[block] == 0 for block in blocks.cached)
        assert len(set(blocks.cached)) == len(blocks.cached)

    @invariant()
    def everyone_reads_their_own_tokens(self) -> None:
        for cache, text in self.held:
            assert cache.table.tokens == text
            assert len(cache.table.blocks) == -(-len(text) // 3)
            keys, values = cache.layers[0]
            assert keys.read(len(text))[0, 1].tolist() == text
            assert values.read(len(text))[0, :, 0].tolist() == text


Serving.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestServing = Serving.TestCase
