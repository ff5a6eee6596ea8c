"""Keys with scales by channel, as in KIVI: a dimension of a head shares its scale over time.

Some dimensions of keys are large at every token; by token they coarsen all others, by channel
they do not (Liu et al. 2024, arXiv 2402.02750). A scale is known only when its block of tokens is
full, so the newest keys are floats until then.

A token that reads as a float before its block is full, and as a code after, is at odds with two
promises of a cache. A row must read the same however tokens are divided into calls, else
speculation would not keep the target's law: here a row reads its own block as floats and all
blocks before it as codes, and the model ends each of its calls at the end of a block. And a
rewind must leave no trace, so a block cut open must have its floats back: they are held for the
newest WINDOW positions, whatever has been coded since. Rewinds that end within them, or at the
start of a block, are exact; others are refused, because no cache of codes could undo them.
"""

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache.formats import BLOCK, WINDOW, Format
from tinyllm.cache.quantised import codes_of, quantise
from tinyllm.cache.storage import StorageShape, read_only
from tinyllm.errors import SettingError
from tinyllm.layers import Array


class ChannelStorage:
    """One layer's keys: codes and scales of full blocks, and a ring of the newest as float16."""

    def __init__(self, shape: StorageShape, kind: Format, compute_dtype: np.dtype) -> None:
        n_kv_head, head_dim, n_blocks = shape.n_kv_head, shape.head_dim, shape.capacity // BLOCK
        blocks = StorageShape(n_kv_head, head_dim, n_blocks * BLOCK, True)
        self._codes = codes_of(kind, blocks)
        self._scales = np.zeros((n_kv_head, head_dim, n_blocks), np.float16)
        # Position p lies at p modulo the window, a multiple of BLOCK unless nothing ever wraps.
        self._newest = np.zeros((n_kv_head, head_dim, min(shape.capacity, WINDOW)), np.float16)
        self._limit = np.array(self._codes.limit, compute_dtype)
        self._floats_from = 0  # the lowest position whose float is still there
        self._compute_dtype = compute_dtype

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Read-only views of codes, scales and the window of floats."""
        return {
            "codes": read_only(self._codes.slab),
            "scales": read_only(self._scales),
            "newest": read_only(self._newest),
        }

    @property
    def nbytes(self) -> int:
        """Bytes allocated, scales and window included."""
        return self._codes.slab.nbytes + self._scales.nbytes + self._newest.nbytes

    def write(self, start: int, vectors: Array) -> None:
        """Store (T, G, D) at positions start..start+T-1, and code every block that is full.

        SettingError as from rewind.
        """
        self.rewind(start)
        stop = start + len(vectors)
        while start < stop:
            end = min(stop, (start // BLOCK + 1) * BLOCK)
            part, vectors = vectors[: end - start], vectors[end - start :]
            at = start % WINDOW
            self._newest[:, :, at : at + len(part)] = part.transpose(1, 2, 0)
            self._floats_from = max(self._floats_from, end - WINDOW)
            if end % BLOCK == 0:
                self._code_block(end // BLOCK - 1)
            start = end

    def write_one(self, position: int, vectors: Array) -> None:
        """Store (G, D) at one position."""
        self.write(position, vectors[None])

    def _code_block(self, block: int) -> None:
        """Codes and scales of a block, from its floats."""
        at = block * BLOCK % WINDOW
        floats = self._newest[:, :, at : at + BLOCK].astype(self._compute_dtype)
        codes, scales = quantise(floats, self._limit, axis=-1)  # (G, D, BLOCK), (G, D, 1)
        self._codes.write(block * BLOCK, codes.transpose(2, 0, 1))
        self._scales[:, :, block] = scales[..., 0]

    def read(self, stop: int) -> Array:
        """(G, D, stop) for the rows of the block that ends at `stop` or is being filled there."""
        coded = (stop - 1) // BLOCK * BLOCK
        n_kv_head, head_dim, _ = self._newest.shape
        keys: Array = np.empty((n_kv_head, head_dim, stop), self._compute_dtype)
        if coded:
            scales = self._scales[:, :, : coded // BLOCK].astype(self._compute_dtype)
            codes = self._codes.read(coded, self._compute_dtype)
            np.multiply(codes, np.repeat(scales, BLOCK, axis=2), out=keys[:, :, :coded])
        at = coded % WINDOW
        keys[:, :, coded:] = self._newest[:, :, at : at + stop - coded]
        return keys

    def rewind(self, length: int) -> None:
        """Prepare for writes from position `length` on.

        SettingError, which names lengths that are possible, when the block it cuts open is
        held as codes only. The positions it keeps must have been written.
        """
        opened = length // BLOCK * BLOCK
        if opened < length and opened < self._floats_from:
            first = -(-self._floats_from // BLOCK) * BLOCK
            raise SettingError(
                f"keys by channel cannot be rewound into a coded block, as to {length} tokens: "
                f"truncate to a multiple of {BLOCK}, or to {first} or more"
            )
        self._floats_from = min(self._floats_from, length)
