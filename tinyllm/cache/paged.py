"""A paged KV cache: the keys and values of many sequences in the blocks of one pool.

Attention here wants a layer's keys and values side by side, so a read gathers a sequence's blocks,
as they are stored, into a dense storage and reads that: the logits are a dense cache's, bit for
bit. A GPU's kernel reads the blocks in place and is spared the copy.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache.block_table import BlockTable
from tinyllm.cache.blocks import BlockPool
from tinyllm.cache.dense import new_slab
from tinyllm.cache.formats import format_of, pageable
from tinyllm.cache.storage import Slab, StorageShape
from tinyllm.config import ModelConfig
from tinyllm.layers import Array


class PagedPool:
    """Room for n_blocks blocks of block_size tokens, in every layer, for sequences to share."""

    def __init__(
        self,
        config: ModelConfig,
        n_blocks: int,
        block_size: int,
        dtype: str,
        compute_dtype: np.dtype,
    ) -> None:
        """Raises SettingError for no block, a size outside 1..128, or what is no such dtype."""
        self.config = config
        self.format = pageable(format_of(dtype))
        self.blocks = BlockPool(n_blocks, block_size)
        n_slots = self.blocks.n_blocks * self.blocks.block_size

        def pair(capacity: int) -> tuple[Slab, Slab]:
            self.format.check(config.head_dim)
            shape = partial(StorageShape, config.n_kv_head, config.head_dim, capacity)
            keys, values = (
                new_slab(shape(first), self.format, compute_dtype) for first in (True, False)
            )
            return keys, values

        self.layers = [pair(n_slots) for _ in range(config.n_layer)]
        # One layer of one sequence, where its blocks are gathered.
        self.gathered = pair(config.context_length)

    @property
    def nbytes(self) -> int:
        """Bytes allocated for keys, values and scales of all blocks."""
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)

    def new_cache(self, tokens: Sequence[int] = ()) -> "PagedCache":
        """A cache for one sequence, which already holds what the pool knows of these tokens.

        Feed the rest: model.forward(tokens[cache.length :], cache).
        """
        table = BlockTable(self.blocks)
        table.reuse(tokens)
        return PagedCache(self, table)


class PagedCache:
    """The KV cache of one sequence, in blocks of a pool; truncate(0) gives them all back."""

    def __init__(self, pool: PagedPool, table: BlockTable) -> None:
        self.pool = pool
        self.table = table
        self.config = pool.config
        self.dtype = pool.format.name
        self.call_ends = None  # see KVCache
        pairs = [zip(layer, pool.gathered, strict=True) for layer in pool.layers]
        self.layers = [
            (_PagedStorage(self, *keys), _PagedStorage(self, *values)) for keys, values in pairs
        ]
        self.slots = self._slots()

    @property
    def length(self) -> int:
        """S, the tokens held."""
        return len(self.table.tokens)

    @property
    def capacity(self) -> int:
        """The most tokens it can hold, with the whole pool to itself."""
        blocks = self.pool.blocks
        return min(self.config.context_length, blocks.n_blocks * blocks.block_size)

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks held, scales included; a shared block counts for each holder."""
        return self.pool.nbytes // self.pool.blocks.n_blocks * len(self.table.blocks)

    @property
    def used_nbytes(self) -> int:
        """Bytes of the positions held; every position costs the same."""
        blocks = self.pool.blocks
        return self.pool.nbytes // (blocks.n_blocks * blocks.block_size) * self.length

    def reserve(self, n_new: int) -> None:
        """Take the blocks for n_new more tokens, else CacheOverflowError and nothing changed."""
        copied = self.table.reserve(n_new)
        if copied is not None:
            size = self.pool.blocks.block_size
            old, new = (np.arange(block * size, (block + 1) * size) for block in copied)
            for storage in (one for layer in self.pool.layers for one in layer):
                storage.copy(new, storage, old)
        self.slots = self._slots()

    def commit(self, tokens: Sequence[int]) -> None:
        """Count written tokens as held; full blocks are there for whoever begins alike."""
        self.table.commit(tokens)

    def truncate(self, length: int) -> None:
        """Forget all tokens from position `length` on, and release the blocks behind it."""
        self.table.truncate(length)

    def fork(self) -> "PagedCache":
        """A second sequence that begins with the same tokens; no block is copied until it must."""
        return PagedCache(self.pool, self.table.fork())

    def _slots(self) -> NDArray[np.intp]:
        """Where in the pool each position lies."""
        size = self.pool.blocks.block_size
        first = np.asarray(self.table.blocks, np.intp) * size
        return (first[:, None] + np.arange(size)).reshape(-1)


class _PagedStorage:
    """One layer's keys or values as one sequence sees them. What read gives lasts until the next
    layer's, or another sequence's, is read."""

    def __init__(self, cache: PagedCache, stored: Slab, gathered: Slab) -> None:
        self._cache = cache
        self._stored = stored
        self._gathered = gathered

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Read-only views of the pool's arrays."""
        return self._stored.arrays

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks held."""
        n_blocks = self._cache.pool.blocks.n_blocks
        return self._stored.nbytes // n_blocks * len(self._cache.table.blocks)

    def write(self, start: int, vectors: Array) -> None:
        """Store (T, G, D) at positions start..start+T-1, in whatever blocks they lie."""
        positions = np.arange(start, start + len(vectors))
        self._gathered.write(start, vectors)
        self._stored.copy(self._cache.slots[positions], self._gathered, positions)

    def write_one(self, position: int, vectors: Array) -> None:
        """Store (G, D) at one position."""
        self._stored.write_one(int(self._cache.slots[position]), vectors)

    def read(self, stop: int) -> Array:
        """Keys (G, D, stop) or values (G, stop, D), gathered from their blocks."""
        self._gathered.copy(slice(stop), self._stored, self._cache.slots[:stop])
        return self._gathered.read(stop)

    def rewind(self, length: int) -> None:
        """Nothing to do: later positions are written over."""
