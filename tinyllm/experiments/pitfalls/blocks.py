"""A fault of block pools: what a refused or aborted sequence holds is never given back.

The leaking pool is a few lines and keeps no keys or values; beside it the engine's own pool and
block tables go through the same requests.
"""

from typing import Protocol

import numpy as np

from tinyllm.cache.block_table import BlockTable
from tinyllm.cache.blocks import BlockPool
from tinyllm.experiments.pitfalls.record import Bench, Result, Seen

BLOCKS, BLOCK = 64, 16  # of a pool, and tokens of a block
OPERATIONS, ENDS = 500, 0.05  # rounds, and how likely a sequence ends in one
AT_ONCE, ROOM = 4, 8  # sequences, and free blocks before another is admitted


class Pool(Protocol):
    """What the requests need of a pool."""

    @property
    def free_blocks(self) -> int:
        """Blocks that nobody holds."""

    def resize(self, sequence: int, length: int) -> None:
        """Let a sequence, new or known, hold so many tokens."""

    def finish(self, sequence: int) -> None:
        """Forget a sequence."""


class LeakyPool:
    """Gives back, when a sequence ends, the blocks of the tokens that it has left."""

    def __init__(self) -> None:
        self.free = list(range(BLOCKS))
        self.held: dict[int, list[int]] = {}  # sequence -> its blocks
        self.length: dict[int, int] = {}

    @property
    def free_blocks(self) -> int:
        """Blocks in the list of free ones."""
        return len(self.free)

    def resize(self, sequence: int, length: int) -> None:
        """More tokens take blocks; fewer, after a refusal, only change the length."""
        blocks = self.held.setdefault(sequence, [])
        while len(blocks) * BLOCK < length:
            blocks.append(self.free.pop())
        self.length[sequence] = length

    def finish(self, sequence: int) -> None:
        """The blocks behind the length are forgotten."""
        needed = -(-self.length.pop(sequence) // BLOCK)
        self.free += self.held.pop(sequence)[:needed]


class EnginePool:
    """The engine's pool, with a block table for every sequence."""

    def __init__(self) -> None:
        self.pool = BlockPool(BLOCKS, BLOCK)
        self.tables: dict[int, BlockTable] = {}

    @property
    def free_blocks(self) -> int:
        """Blocks that no table holds."""
        return self.pool.free

    def resize(self, sequence: int, length: int) -> None:
        """Both ways."""
        table = self.tables.setdefault(sequence, BlockTable(self.pool))
        added = length - len(table.tokens)
        if added > 0:
            table.reserve(added)
            table.commit([sequence] * added)
        else:
            table.truncate(length)

    def finish(self, sequence: int) -> None:
        """Give all blocks back."""
        self.tables.pop(sequence).truncate(0)


def free_at_the_end(pool: Pool, bench: Bench) -> int:
    """Admit, draft, refuse, abort and finish at random, then end all: blocks that are free."""
    rng, lengths = np.random.default_rng(bench.seed), dict[int, int]()
    for number in range(OPERATIONS):
        if len(lengths) < AT_ONCE and pool.free_blocks > ROOM:
            lengths[number] = int(rng.integers(1, 4 * BLOCK))
            pool.resize(number, lengths[number])
        for sequence, base in list(lengths.items()):
            proposed = int(rng.integers(0, 2 * bench.k + 1))
            ends = pool.free_blocks < 2 or rng.random() < ENDS
            if not ends:
                pool.resize(sequence, base + 1 + proposed)
                ends = rng.random() < ENDS  # aborted in the middle of a round
                kept = 0 if ends else 1 + int(rng.integers(0, proposed + 1))
                lengths[sequence] = base + kept
                pool.resize(sequence, base + kept)
            if ends:
                pool.finish(sequence)
                del lengths[sequence]
    for sequence in lengths:
        pool.finish(sequence)
    return pool.free_blocks


def measure_blocks(bench: Bench) -> Seen:
    """Are all blocks free when every sequence has ended?"""
    engine = EnginePool()
    wrong, right = free_at_the_end(LeakyPool(), bench), free_at_the_end(engine, bench)
    result = Result(
        f"free blocks of {BLOCKS} when every sequence has ended",
        str(wrong),
        str(right),
        f"releases blocks as it truncates: {engine.pool.free} free + {engine.pool.used} used",
    )
    return Seen(result)
