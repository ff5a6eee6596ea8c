"""A block table: which blocks of a pool hold the tokens of one sequence, in order.

Tables share blocks: with a fork of their own, and with whoever begins with the same tokens. Only
the block behind the last token is ever written to, and if it is shared, it is copied first.
"""

from collections.abc import Sequence

from tinyllm.cache.blocks import BlockPool, Prefix
from tinyllm.errors import CacheOverflowError, SettingError


class BlockTable:
    """The blocks of one sequence. truncate(0) gives them all back."""

    def __init__(self, pool: BlockPool) -> None:
        self.pool = pool
        self.blocks: list[int] = []
        self.tokens: list[int] = []
        self._prefixes: list[Prefix] = []  # of the full blocks

    def reuse(self, tokens: Sequence[int]) -> int:
        """Begin with the blocks that others left of `tokens`; how many tokens that are.

        Whole blocks only, and never the last token: its logits are still to be computed. The
        table must be empty.
        """
        size = self.pool.block_size
        for start in range(0, len(tokens) - size, size):
            found = self.pool.find(Prefix(self._last_prefix, tokens[start : start + size]))
            if found is None:
                break
            block, prefix = found
            self.blocks.append(self.pool.share(block))
            self.tokens += prefix.tokens
            self._prefixes.append(prefix)
        return len(self.tokens)

    def reserve(self, n_new: int) -> tuple[int, int] | None:
        """Take the blocks that n_new more tokens need.

        -> (old, new) when the block to be written to was shared: its tokens are to be copied.
        Raises CacheOverflowError, and has changed nothing, when too few blocks are free.
        """
        pool, held = self.pool, len(self.tokens)
        missing = max(0, -(-(held + n_new) // pool.block_size) - len(self.blocks))
        partial = held // pool.block_size if held % pool.block_size else None
        shared = partial is not None and pool.holders[self.blocks[partial]] > 1
        if missing + shared > pool.free:
            raise CacheOverflowError(
                f"{missing + shared} more blocks of {pool.block_size} tokens are needed "
                f"({held} tokens held + {n_new} new) and {pool.free} of {pool.n_blocks} are free: "
                f"truncate another sequence, or make the pool with at least "
                f"{pool.n_blocks - pool.free + missing + shared} blocks"
            )
        copied = None
        if partial is not None:
            old = self.blocks[partial]
            if shared:
                self.blocks[partial] = pool.take()
                pool.release(old)
                copied = old, self.blocks[partial]
            else:
                pool.forget(old)  # truncated into: what follows is another text
        self.blocks += [pool.take() for _ in range(missing)]
        return copied

    def commit(self, tokens: Sequence[int]) -> None:
        """Count written tokens as held; blocks that they fill can be found from now on."""
        self.tokens += tokens
        size = self.pool.block_size
        for number in range(len(self._prefixes), len(self.tokens) // size):
            prefix = Prefix(self._last_prefix, self.tokens[number * size : (number + 1) * size])
            self._prefixes.append(self.pool.publish(self.blocks[number], prefix))

    def truncate(self, length: int) -> None:
        """Forget all tokens from position `length` on and release the blocks behind it."""
        if not 0 <= length <= len(self.tokens):
            raise SettingError(
                f"cannot truncate a cache of {len(self.tokens)} tokens to {length}: "
                f"give a length from 0 to {len(self.tokens)}"
            )
        size = self.pool.block_size
        kept = -(-length // size)
        for block in reversed(self.blocks[kept:]):  # so that a prefix is evicted from its end
            self.pool.release(block)
        del self.blocks[kept:], self.tokens[length:], self._prefixes[length // size :]

    def fork(self) -> "BlockTable":
        """A second sequence that begins with the same tokens, in the same blocks."""
        twin = BlockTable(self.pool)
        kept = -(-len(self.tokens) // self.pool.block_size)
        twin.blocks = [self.pool.share(block) for block in self.blocks[:kept]]
        twin.tokens, twin._prefixes = self.tokens.copy(), self._prefixes.copy()
        return twin

    @property
    def _last_prefix(self) -> Prefix | None:
        return self._prefixes[-1] if self._prefixes else None
