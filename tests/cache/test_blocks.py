"""Blocks and tables by themselves: counts, sharing, finding, eviction, and what must not happen."""

import pytest

from tinyllm.cache import blocks
from tinyllm.cache.block_table import BlockTable
from tinyllm.cache.blocks import BlockPool, Prefix
from tinyllm.errors import CacheOverflowError, SettingError


def write(table: BlockTable, tokens: list[int]) -> tuple[int, int] | None:
    """What a forward call does to a table."""
    copied = table.reserve(len(tokens))
    table.commit(tokens)
    return copied


def new_table(pool: BlockPool, tokens: list[int]) -> BlockTable:
    table = BlockTable(pool)
    reused = table.reuse(tokens)
    write(table, tokens[reused:])
    return table


def found(pool: BlockPool, tokens: list[int]) -> int:
    """How many of these tokens a newcomer could reuse."""
    table = BlockTable(pool)
    reused = table.reuse(tokens)
    table.truncate(0)
    return reused


def test_blocks_are_taken_as_they_are_needed() -> None:
    pool = BlockPool(4, 3)
    table = BlockTable(pool)
    for length, held in ((1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (7, 3)):
        write(table, [5] * (length - len(table.tokens)))
        assert len(table.blocks) == held
        assert (pool.used, pool.free) == (held, 4 - held)
    table.truncate(3)
    assert (len(table.blocks), pool.free) == (1, 3)
    table.truncate(0)
    assert (table.blocks, pool.free, pool.used) == ([], 4, 0)


def test_whoever_begins_alike_shares_whole_blocks_but_computes_the_last_token() -> None:
    pool = BlockPool(8, 4)
    first = new_table(pool, [1, 2, 3, 4, 5, 6, 7, 8, 9])
    for tokens, reused in (
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], 8),
        ([1, 2, 3, 4, 5, 6, 7, 8], 4),  # the last token's logits are wanted
        ([1, 2, 3, 4, 5, 6, 0, 8, 9], 4),
        ([0, 2, 3, 4, 5, 6, 7, 8, 9], 0),  # the same second block behind another first one
        ([5, 6, 7, 8, 9], 0),
        ([1, 2, 3, 4], 0),
        ([], 0),
    ):
        table = BlockTable(pool)
        assert table.reuse(tokens) == reused
        assert table.blocks == first.blocks[: reused // 4]
        assert table.tokens == tokens[:reused]
        table.truncate(0)
    assert pool.holders == [1, 1, 1, 0, 0, 0, 0, 0]


def test_a_colliding_hash_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "chained_hash", lambda parent, tokens: 0)
    pool = BlockPool(8, 2)
    new_table(pool, [1, 2, 3, 4, 5])
    for tokens, reused in (([3, 4, 1, 2, 5], 0), ([1, 2, 4, 3, 5], 2), ([1, 2, 3, 4, 5], 4)):
        table = BlockTable(pool)
        assert table.reuse(tokens) == reused
        table.truncate(0)


def test_prefixes_are_equal_token_by_token() -> None:
    one, same = (Prefix(Prefix(None, [1, 2]), [3, 4]) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    others = (Prefix(None, [3, 4]), Prefix(Prefix(None, [1, 1]), [3, 4]), Prefix(same, [3, 4]))
    for other in others:
        assert one != other
        assert hash(one) != hash(other)
    assert one != (3, 4)


def test_a_shared_last_block_is_copied_before_it_is_written() -> None:
    pool = BlockPool(4, 4)
    table = new_table(pool, [1, 2, 3, 4, 5])
    twin = table.fork()
    assert twin.blocks == table.blocks == [0, 1]
    assert pool.holders == [2, 2, 0, 0]
    assert write(twin, [6]) == (1, 2)
    assert (table.blocks, twin.blocks) == ([0, 1], [0, 2])
    assert pool.holders == [2, 1, 1, 0]
    assert write(table, [7]) is None  # now its own again
    assert (table.tokens, twin.tokens) == ([1, 2, 3, 4, 5, 7], [1, 2, 3, 4, 5, 6])


def test_a_fork_at_the_end_of_a_block_needs_no_copy() -> None:
    pool = BlockPool(4, 4)
    table = new_table(pool, [1, 2, 3, 4])
    twin = table.fork()
    assert write(twin, [5]) is None
    assert (table.blocks, twin.blocks) == ([0], [0, 1])


def test_the_least_recently_used_prefix_goes_first_and_from_its_end() -> None:
    pool = BlockPool(5, 2)
    old = new_table(pool, [1, 1, 2, 2])  # blocks 0, 1
    new = new_table(pool, [3, 3, 4, 4])  # blocks 2, 3
    old.truncate(0)
    new.truncate(0)
    assert pool.cached == (1, 0, 3, 2)
    assert (pool.used, pool.free) == (0, 5)
    again = BlockTable(pool)
    assert again.reuse([1, 1, 9]) == 2  # used once more: block 0 is out of danger
    assert pool.cached == (1, 3, 2)
    write(again, [7, 7, 7, 7])  # the blank block 4, then the oldest prefix
    assert again.blocks == [0, 4, 1]
    assert pool.cached == (3, 2)
    found = BlockTable(pool)
    assert found.reuse([3, 3, 4, 4, 5]) == 4
    assert found.blocks == [2, 3]


def test_a_block_truncated_into_is_no_longer_found_when_it_is_written() -> None:
    pool = BlockPool(4, 2)
    table = new_table(pool, [1, 1, 2, 2])
    table.truncate(3)
    assert found(pool, [1, 1, 2, 2, 0]) == 4  # the block's second half is still there
    write(table, [9])
    assert found(pool, [1, 1, 2, 2, 0]) == 2
    assert found(pool, [1, 1, 2, 9, 0]) == 4


def test_two_blocks_with_the_same_tokens_are_found_once_and_freed_both() -> None:
    pool = BlockPool(4, 2)
    one, two = BlockTable(pool), BlockTable(pool)
    for table in (one, two):  # side by side: neither could find the other's block
        table.reserve(3)
    for table in (one, two):
        table.commit([1, 1, 2])
    third = BlockTable(pool)
    assert third.reuse([1, 1, 2]) == 2
    assert third.blocks == one.blocks[:1]
    for table in (one, two, third):
        table.truncate(0)
    assert (pool.free, pool.cached) == (4, (0,))


def test_too_few_blocks_are_said_in_numbers_and_change_nothing() -> None:
    pool = BlockPool(3, 4)
    table = new_table(pool, [1, 2, 3, 4, 5])
    twin = table.fork()
    before = pool.holders.copy(), table.blocks.copy(), twin.blocks.copy(), pool.free
    with pytest.raises(CacheOverflowError) as refusal:
        twin.reserve(4)  # one block behind the copy of the second
    assert str(refusal.value) == (
        "2 more blocks of 4 tokens are needed (5 tokens held + 4 new) and 1 of 3 are free: "
        "truncate another sequence, or make the pool with at least 4 blocks"
    )
    assert (pool.holders, table.blocks, twin.blocks, pool.free) == before
    assert write(twin, [6, 7, 8]) == (1, 2)


@pytest.mark.parametrize(
    ("n_blocks", "size", "says"),
    [(0, 16, "n_blocks"), (4, 0, "block_size"), (4, 129, "from 1 to 128"), (4, 1.5, "block_size")],
)
def test_a_pool_that_cannot_be(n_blocks: int, size: int, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        BlockPool(n_blocks, size)


def test_truncate_takes_a_length_within_the_table() -> None:
    table = new_table(BlockPool(2, 4), [1, 2, 3])
    for length in (-1, 4):
        with pytest.raises(SettingError, match="give a length from 0 to 3"):
            table.truncate(length)
    assert table.tokens == [1, 2, 3]
