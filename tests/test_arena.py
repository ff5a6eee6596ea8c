"""A model's weights lie together, apart from each other, each from a cache line on."""

import numpy as np
import pytest

from tinyllm.arena import PIECE, Arena
from tinyllm.config import ModelConfig
from tinyllm.model import Transformer, random_weights

FLOAT32 = np.dtype("float32")


def memory(array):
    return array.ctypes.data, array.ctypes.data + array.nbytes


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_has_the_order_asked_for(order):
    array = Arena().empty((33, 40), FLOAT32, order)
    assert (array.shape, array.dtype) == ((33, 40), FLOAT32)
    assert array.flags[f"{order}_CONTIGUOUS"]


@pytest.mark.parametrize("n_bytes", [0, 64, 4096, 10 * PIECE])
def test_no_array_lies_in_another(n_bytes):
    """Whether they fit into a piece or not."""
    arena = Arena(n_bytes)
    arrays = [arena.empty((rows, 5), FLOAT32) for rows in (1, 7, 100, 0, 3, 1000, 2, 16)]
    for n, array in enumerate(arrays):
        array[...] = n
    assert all((array == n).all() for n, array in enumerate(arrays))
    assert [array.ctypes.data % 64 for array in arrays] == [0] * len(arrays)


def test_what_fits_into_a_piece_lies_in_one():
    arena = Arena(4096)
    arrays = [arena.empty((100,), FLOAT32) for _ in range(8)]
    starts = np.array([array.ctypes.data for array in arrays])
    assert (np.diff(starts) == 448).all()  # 400 bytes, and on to the next line


def test_the_weights_of_a_model_are_together():
    config = ModelConfig(n_layer=2, width=64, n_head=2, n_kv_head=1)
    folded = Transformer(config, random_weights(config, 0), chunk_columns=16)._weights
    weights = [folded.head]
    for block in folded.blocks:
        weights += [block.qkv, block.attention_out, block.up, block.down]
    arrays = [one.whole for one in weights]
    arrays += [one.chunks for one in weights if not np.shares_memory(one.whole, one.chunks)]
    assert len(arrays) == 9 + 7  # the chunks of `down` are views
    starts, ends = zip(*[memory(array) for array in arrays], strict=True)
    assert [start % 64 for start in starts] == [0] * len(arrays)
    assert max(ends) - min(starts) < sum(array.nbytes + 64 for array in arrays)
