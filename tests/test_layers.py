"""Each fast form against the plain form it replaces."""

import numpy as np
import pytest

from tinyllm.arena import Arena
from tinyllm.attention import attend_row, attend_rows, exponentials
from tinyllm.config import NORM_EPS, PRESETS
from tinyllm.experiments.reference import PlainCache, gelu, plain_forward, softmax
from tinyllm.layers import (
    FEW_ROWS,
    GELU_SCALE,
    GELU_UNSCALE,
    Constants,
    Weight,
    normalise_row,
    normalise_rows,
    path_of,
    product_rows,
    scaled_gelu,
)
from tinyllm.model import Transformer, random_weights

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scaled_gelu_is_gelu_with_its_constants_folded(dtype):
    x = np.linspace(-6, 6, 401).astype(dtype)
    folded = GELU_UNSCALE * scaled_gelu(GELU_SCALE * x, Constants.of(np.dtype(dtype), 1))
    assert folded.dtype == dtype
    assert np.abs(folded - gelu(x)).max() < (2e-6 if dtype == "float32" else 1e-14)


def test_normalised_rows_are_layer_norm_of_centred_rows():
    rows = RNG.normal(3, 2, (5, 12))
    centred = rows - rows.mean(axis=1, keepdims=True)
    carried = np.pad(centred, ((0, 0), (0, 1)), constant_values=(12 * NORM_EPS) ** 0.5)
    expected = centred / np.sqrt(rows.var(axis=1, keepdims=True) + NORM_EPS)
    normalised = normalise_rows(carried)
    assert np.allclose(normalised[:, :-1] * 12**0.5, expected, rtol=1e-14)
    assert (normalised[:, -1] == 1).all()
    for row, same in zip(carried, normalised, strict=True):
        assert np.allclose(normalise_row(row), same, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("centre", [0, 60, -60, 100, -100, 5000, -5000])
@pytest.mark.parametrize("spread", [0.1, 10, 300])
def test_exponentials_are_a_softmax_wherever_the_scores_lie(dtype, centre, spread):
    """Large scores overflow and small ones vanish unless they are shifted."""
    scores = RNG.normal(centre, spread, (6, 40)).astype(dtype)
    with np.errstate(over="ignore"):
        weights, total = exponentials(scores, np.ones(40, dtype))
    expected = softmax(scores.astype(np.float64))
    # The scores' own rounding, spread / 2^24, is what float32 cannot be better than.
    assert np.allclose(weights / total[:, None], expected, rtol=1e-5, atol=1e-12)
    assert np.isfinite(total).all()


def test_one_row_is_the_last_of_many():
    queries = RNG.normal(size=(7, 6, 4))
    keys, values = RNG.normal(size=(2, 4, 9)), RNG.normal(size=(2, 9, 4))
    with np.errstate(over="ignore"):
        last = attend_rows(queries, keys, values, np.ones(9))[-1]
        assert np.allclose(attend_row(queries[-1], keys, values, np.ones(9)), last, rtol=1e-13)


@pytest.mark.parametrize("size", [20, 60])
def test_a_model_with_huge_scores_equals_the_plain_engine(size):
    config = PRESETS["draft"]
    weights = {name: w.astype(np.float64) for name, w in random_weights(config).items()}
    weights["h.0.attn.c_attn.weight"] *= size
    model, fed = Transformer(config, weights, "float64"), RNG.integers(0, 96, 90).tolist()
    plain = plain_forward(weights, config, fed, PlainCache(config, 90, "float64"))
    cache = model.new_cache()
    steps = np.concatenate([model.forward([token], cache) for token in fed])
    assert np.abs(model.forward(fed) - plain).max() < 1e-11
    assert np.abs(steps - plain).max() < 1e-11


@pytest.mark.parametrize("n_in", [1, 95, 96, 97, 192, 193, 384, 1000])
@pytest.mark.parametrize("rows", [2, 16, 17, 40])
def test_a_product_in_parts_is_the_product(rows, n_in):
    x, weight = RNG.normal(size=(rows, n_in)), RNG.normal(size=(n_in, 7))
    assert np.allclose(product_rows(x, weight), x @ weight, rtol=1e-12, atol=1e-12)


def test_a_product_in_parts_rounds_less():
    x = RNG.normal(size=(64, 384)).astype(np.float32)
    weight = RNG.normal(size=(384, 96)).astype(np.float32)
    exact = x.astype(np.float64) @ weight.astype(np.float64)
    in_parts, at_once = product_rows(x, weight) - exact, x @ weight - exact
    assert np.square(in_parts).mean() < np.square(at_once).mean()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_out", [1, 7, 96, 512])
@pytest.mark.parametrize("chunk_columns", [0, 1, 16, 10**9])
def test_every_path_of_a_weight_is_the_product(chunk_columns, n_out, order):
    whole = np.asarray(RNG.normal(size=(57, n_out)), order=order)
    weight = Weight.of(whole, chunk_columns, Arena())
    for rows in (1, 2, 5, FEW_ROWS, FEW_ROWS + 1, 40):
        x = RNG.normal(size=(rows, 57))
        assert np.allclose(weight.rows(x), x @ whole, rtol=1e-13, atol=1e-13)
    assert np.allclose(weight.row(x[0]), x[0] @ whole, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("chunk_columns", "n_out", "width"),
    [
        (0, 512, None),  # no chunks asked for
        (10**6, 512, None),  # one chunk would be the whole
        (128, 512, 128),
        (127, 512, 64),  # the widest divisor that is not larger
        (1, 512, 1),
        (6, 7, 1),
    ],
)
def test_chunks_are_equal_columns_no_wider_than_wished(chunk_columns, n_out, width):
    weight = Weight.of(RNG.normal(size=(257, n_out)).astype(np.float32), chunk_columns, Arena())
    if width is None:
        assert weight.chunks is None
    else:
        assert weight.chunks is not None
        assert weight.chunks.shape == (n_out // width, 257, width)
        assert weight.chunks.flags.c_contiguous


def test_the_path_is_named():
    whole = Weight.of(RNG.normal(size=(64, 96)), 0, Arena())
    chunked = Weight.of(RNG.normal(size=(64, 96)), 32, Arena())
    assert [path_of(whole, n) for n in (1, 16, 17)] == ["one row", "few rows, whole", "many rows"]
    assert path_of(chunked, 16) == "few rows, chunks of 16 KiB"


def test_a_model_in_chunks_equals_the_plain_engine():
    config = PRESETS["draft"]
    weights = {name: w.astype(np.float64) for name, w in random_weights(config).items()}
    model, fed = Transformer(config, weights, "float64", chunk_columns=16), [7, 9, 1, 95, 40, 3]
    plain = plain_forward(weights, config, fed, PlainCache(config, 90, "float64"))
    assert np.abs(model.forward(fed) - plain).max() < 1e-12


@pytest.mark.parametrize("n_positions", [1023, 1024, 1100, 1281, 2048])
@pytest.mark.parametrize("n_rows", [1, 2, 5, 9])
def test_attention_by_blocks_of_positions_is_attention(n_positions, n_rows):
    """Over a cache with room for more, as the engine reads it."""
    n_kv_head, head_dim, n_head = 2, 8, 4
    keys = RNG.normal(size=(n_kv_head, head_dim, 2500))[:, :, :n_positions]
    values = RNG.normal(size=(n_kv_head, 2500, head_dim))[:, :n_positions]
    queries = RNG.normal(size=(n_rows, n_head, head_dim)) / head_dim**0.5
    with np.errstate(over="ignore"):
        found = attend_rows(queries, keys, values, np.ones(n_positions))
        last = attend_row(queries[-1], keys, values, np.ones(n_positions))
    scores = np.einsum("thd,hds->hts", queries, np.repeat(keys, 2, axis=0))
    scores += np.triu(np.full((n_rows, n_positions), -np.inf), n_positions - n_rows + 1)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    wanted = np.einsum("hts,hsd->thd", weights, np.repeat(values, 2, axis=0))
    assert np.allclose(found, wanted.reshape(n_rows, -1), rtol=1e-12, atol=1e-12)
    assert np.allclose(last, wanted[-1].reshape(-1), rtol=1e-12, atol=1e-12)
