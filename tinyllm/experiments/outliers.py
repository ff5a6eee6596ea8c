"""What a large channel does to keys stored as integers, by token and by channel.

A model's own keys, with one channel of every head made larger on purpose, as large models have
them (Dettmers et al. 2022, arXiv 2208.07339; Liu et al. 2024, arXiv 2402.02750). How large it
then is beside the head's other channels is measured too. Only storages work; draws nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tinyllm.cache import format_of
from tinyllm.cache.dense import new_storage
from tinyllm.cache.formats import BLOCK
from tinyllm.cache.storage import StorageShape
from tinyllm.experiments.models import is_large
from tinyllm.experiments.prompts import validation_tokens
from tinyllm.layers import Array
from tinyllm.model import Transformer

FACTORS = (1, 2, 5, 10, 20, 50, 100)  # by which one channel is made larger
MOST, LARGE_MOST = 512, 128  # tokens whose keys are looked at, and of a large model
DTYPES = ("int8", "int8_channel", "int4", "int4_g8", "int4_channel")


@dataclass(frozen=True, slots=True)
class OutlierRow:
    """What is left of a model's keys, one channel of each head made `factor` times larger."""

    dtype: str
    factor: float
    times_median: float  # the large channel's size over its head's median one; median of heads
    outlier_error: float  # of the large channel: root mean square, relative to its keys'
    others_error: float  # of all other channels, relative to theirs


def rows(model: Transformer) -> Iterator[OutlierRow]:
    """What the storages of integers make of keys with one large channel in every head."""
    keys = _keys(model)
    largest = np.square(keys).mean(axis=0).argmax(axis=1)  # (heads,)
    heads = np.arange(len(largest))
    for factor in FACTORS:
        scaled = keys.copy()
        scaled[:, heads, largest] *= factor
        for dtype in DTYPES:
            squares = np.square(_there_and_back(scaled, dtype) - scaled).sum(axis=0)  # (heads, D)
            size = np.square(scaled).sum(axis=0)
            times = (size[heads, largest] / np.median(size, axis=1)) ** 0.5
            outlier = squares[heads, largest].sum() / size[heads, largest].sum()
            squares[heads, largest] = size[heads, largest] = 0
            others = squares.sum() / size.sum()
            yield OutlierRow(
                dtype, factor, float(np.median(times)), float(outlier**0.5), float(others**0.5)
            )


def _keys(model: Transformer) -> Array:
    """(S, L G, D): a model's keys of the validation text's beginning, in full blocks."""
    held = min(model.config.context_length, LARGE_MOST if is_large(model.config) else MOST)
    held -= held % BLOCK
    cache = model.new_cache("float32", held)
    model.forward(validation_tokens(model, held), cache, rows=0)
    keys = np.concatenate([storage.read(held) for storage, _values in cache.layers])
    return keys.transpose(2, 0, 1)  # (L G, D, S) -> (S, L G, D)


def _there_and_back(keys: Array, dtype: str) -> Array:
    """(S, heads, D) as a storage gives them back to the token after them."""
    n_tokens, heads, head_dim = keys.shape
    shape = StorageShape(heads, head_dim, n_tokens + 1, dims_first=True)
    storage = new_storage(shape, format_of(dtype), keys.dtype)
    storage.write(0, np.concatenate([keys, keys[:1]]))
    return storage.read(n_tokens + 1)[:, :, :-1].transpose(2, 0, 1)
