"""A fault of block pools: what a refused or aborted sequence holds is never given back.

The pools are a few lines each, and keep no keys or values.
"""

import numpy as np

from tinyllm.experiments.pitfalls.record import Bench, Result, Seen

BLOCKS, BLOCK = 64, 16  # of a pool, and tokens of a block
OPERATIONS, ENDS = 500, 0.05  # rounds, and how likely a sequence ends in one


class LeakyPool:
    """Blocks for sequences. Gives back, at the end, the blocks of the tokens that are left."""

    def __init__(self) -> None:
        self.free = list(range(BLOCKS))
        self.held: dict[int, list[int]] = {}  # sequence -> its blocks
        self.length: dict[int, int] = {}

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


class WholePool(LeakyPool):
    """Gives blocks back as soon as no token stands in them."""

    def resize(self, sequence: int, length: int) -> None:
        """Both ways."""
        super().resize(sequence, length)
        blocks = self.held[sequence]
        while (len(blocks) - 1) * BLOCK >= length:
            self.free.append(blocks.pop())


def measure_blocks(bench: Bench) -> Seen:
    """Admit, draft, refuse, abort and finish at random, then end all: are all blocks free?"""
    left = {}
    for kind in (LeakyPool, WholePool):
        pool, rng = kind(), np.random.default_rng(bench.seed)
        for number in range(OPERATIONS):
            if len(pool.held) < 4 and len(pool.free) > 8:
                pool.resize(number, int(rng.integers(1, 4 * BLOCK)))
            for sequence in list(pool.held):
                base, proposed = pool.length[sequence], int(rng.integers(0, 2 * bench.k + 1))
                if len(pool.free) < 2 or rng.random() < ENDS:
                    pool.finish(sequence)
                    continue
                pool.resize(sequence, base + 1 + proposed)
                aborted = rng.random() < ENDS  # in the middle of a round
                kept = 0 if aborted else 1 + int(rng.integers(0, proposed + 1))
                pool.resize(sequence, base + kept)
                if aborted:
                    pool.finish(sequence)
        for sequence in list(pool.held):
            pool.finish(sequence)
        left[kind] = len(pool.free)
    cache = bench.target.new_cache()
    bench.target.forward(bench.prompt_tokens, cache)
    before = cache.nbytes
    cache.truncate(1)
    result = Result(
        f"free blocks of {BLOCKS} when every sequence has ended",
        str(left[LeakyPool]),
        str(left[WholePool]),
        f"the dense cache has no blocks to lose: {before} bytes before and {cache.nbytes} after "
        "a rollback",
    )
    return Seen(result)
