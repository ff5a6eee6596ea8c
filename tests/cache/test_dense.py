"""What a cache promises, for every dtype."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.cache import CACHE_DTYPES
from tinyllm.cache.storage import StorageShape, new_storage
from tinyllm.config import PRESETS
from tinyllm.errors import CacheOverflowError, CacheRangeError, SettingError, WeightsError
from tinyllm.model import Transformer, random_model, random_weights

ELEMENT_BYTES = {"float32": 4, "float16": 2, "int8": 1}
SCALE_BYTES = {"float32": 0, "float16": 0, "int8": 2}
MODELS = {name: random_model(PRESETS[name]) for name in ("target", "target-kv1", "draft")}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", CACHE_DTYPES)
@pytest.mark.parametrize("capacity", [1, 112, 512])
def test_bytes_are_the_formula_and_the_arrays(name, dtype, capacity):
    model = MODELS[name]
    config, cache = model.config, model.new_cache(dtype, capacity)
    vectors = 2 * config.n_layer * config.n_kv_head * capacity
    formula = vectors * (config.head_dim * ELEMENT_BYTES[dtype] + SCALE_BYTES[dtype])
    assert cache.nbytes == formula
    assert sum(array.nbytes for array in cache.stored_arrays.values()) == formula


def test_bytes_of_the_article():
    target = MODELS["target"]
    assert [target.new_cache(d, 112).nbytes for d in CACHE_DTYPES] == [344_064, 172_032, 93_184]


def test_used_bytes_follow_the_length():
    cache = MODELS["target"].new_cache("int8", 112)
    assert cache.used_nbytes == 0
    MODELS["target"].forward(list(range(50)), cache)
    assert cache.used_nbytes == 93_184 * 50 // 112


@pytest.mark.parametrize("dtype", CACHE_DTYPES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_rewind_then_append_equals_never_appended(dtype, data):
    model = MODELS["draft"]
    kept = data.draw(st.lists(st.integers(0, 95), min_size=1, max_size=20))
    dropped = data.draw(st.lists(st.integers(0, 95), min_size=1, max_size=20))
    then = data.draw(st.lists(st.integers(0, 95), min_size=1, max_size=20))
    rewound, fresh = model.new_cache(dtype), model.new_cache(dtype)
    model.forward(kept, rewound)
    model.forward(dropped, rewound)
    rewound.truncate(len(kept))
    model.forward(kept, fresh)
    assert np.array_equal(model.forward(then, rewound), model.forward(then, fresh))


def test_truncate_takes_a_length_within_the_cache():
    cache = MODELS["draft"].new_cache()
    MODELS["draft"].forward([1, 2, 3], cache)
    for length in (-1, 4):
        with pytest.raises(SettingError, match="give a length from 0 to 3"):
            cache.truncate(length)
    cache.truncate(0)
    assert (cache.length, cache.capacity) == (0, 512)


def test_a_cache_needs_room():
    with pytest.raises(SettingError, match="at least 1 token, not 0"):
        MODELS["draft"].new_cache(capacity=0)
    cache = MODELS["draft"].new_cache(capacity=2)
    with pytest.raises(CacheOverflowError, match=r"new_cache\(capacity=3\)"):
        MODELS["draft"].forward([1, 2, 3], cache)


def model_with_large(kind, factor):
    """A model whose keys, or values, are `factor` times as large as usual."""
    config = PRESETS["target"]
    weights = random_weights(config)
    columns = slice(96, 192) if kind == "keys" else slice(192, 288)
    weights["h.2.attn.c_attn.weight"][:, columns] *= np.float32(factor)
    return Transformer(config, weights)


@pytest.mark.parametrize("kind", ["keys", "values"])
@pytest.mark.parametrize(("dtype", "factor"), [("float16", 1e7), ("int8", 1e9)])
@pytest.mark.parametrize("tokens", [[5], [5, 6, 7]])
def test_a_number_the_dtype_cannot_hold_is_refused_by_name(kind, dtype, factor, tokens):
    """Its inf would hide the position, or make every later logit nan, without a word."""
    model = model_with_large(kind, factor)
    cache = model.new_cache(dtype)
    message = f"{kind} of layer 3 hold a number that a KV cache in {dtype} cannot: choose a wider"
    with pytest.raises(CacheRangeError, match=message):
        model.forward(tokens, cache)
    assert cache.length == 0
    wide = model.new_cache("float32")
    for token in tokens:
        assert np.isfinite(model.forward([token], wide)).all()


@pytest.mark.parametrize("kind", ["keys", "values"])
@pytest.mark.parametrize("dtype", CACHE_DTYPES)
def test_large_numbers_within_the_range_are_stored(kind, dtype):
    model = model_with_large(kind, 1e4)
    cache = model.new_cache(dtype)
    assert np.isfinite(model.forward([5, 6, 7], cache)).all()
    keys, values = cache.layers[2]
    assert np.abs((keys if kind == "keys" else values).read(3)).max() > 1000


@pytest.mark.parametrize("tokens", [[5], [5, 6]])
def test_weights_too_large_to_compute_with_are_refused(tokens):
    config = PRESETS["draft"]
    weights = random_weights(config)
    weights["lm_head.weight"] = np.float32(2e37) * np.sign(weights["lm_head.weight"])
    with pytest.raises(WeightsError, match="logits overflow in float32: load it with"):
        Transformer(config, weights).forward(tokens)
    assert np.isfinite(Transformer(config, weights, "float64").forward(tokens)).all()


@pytest.mark.parametrize("dtype", CACHE_DTYPES)
@pytest.mark.parametrize("dims_first", [True, False])
def test_read_gives_back_what_was_written(dtype, dims_first):
    shape = StorageShape(n_kv_head=2, head_dim=8, capacity=12, dims_first=dims_first)
    storage = new_storage(shape, dtype, np.dtype("float32"))
    vectors = np.random.default_rng(3).normal(0, 4, (5, 2, 8)).astype(np.float32)
    vectors[2] = 0  # its scale is 0 and must not divide
    storage.write(0, vectors[:3])
    storage.write(3, vectors[3:])
    read = storage.read(5).transpose((2, 0, 1) if dims_first else (1, 0, 2))
    assert read.dtype == np.float32
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    # Half a code of the scale, and the float16 rounding of the scale on up to 127 codes.
    bound = {"float32": 0, "float16": largest / 2048, "int8": largest * (0.5 / 127 + 1 / 2048)}
    assert (np.abs(read - vectors) <= bound[dtype] + 1e-12).all()


def test_int8_is_stored_as_int8_with_a_float16_scale():
    arrays = MODELS["target"].new_cache("int8", 16).stored_arrays
    assert arrays["3.keys.codes"].dtype == np.int8
    assert arrays["3.keys.codes"].shape == (4, 24, 16)
    assert arrays["0.values.scales"].dtype == np.float16
    assert arrays["0.values.scales"].shape == (4, 16)


def test_stored_arrays_cannot_be_written():
    arrays = MODELS["draft"].new_cache().stored_arrays
    with pytest.raises(ValueError, match="read-only"):
        arrays["0.keys.elements"][:] = 1
