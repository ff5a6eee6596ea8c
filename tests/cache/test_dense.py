"""What a cache promises, for every dtype."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.cache import CACHE_DTYPES, PAGED_DTYPES
from tinyllm.config import PRESETS, ModelConfig
from tinyllm.errors import CacheOverflowError, CacheRangeError, SettingError, WeightsError
from tinyllm.model import Transformer, random_model, random_weights

# Bytes of 24 elements, head_dim of all these models, with their scales.
VECTOR_BYTES = {
    "float32": 96,
    "float16": 48,
    "bfloat16": 48,
    "fp8_e4m3": 24,
    "fp8_e5m2": 24,
    "int8": 26,
    "int8_channel": 26,
    "int4": 14,
    "int4_g8": 18,
    "int4_channel": 14,
}
FLOAT64_DRAFT = random_model(PRESETS["draft"], dtype="float64")
MODELS = {name: random_model(PRESETS[name]) for name in ("target", "target-kv1", "draft")}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", CACHE_DTYPES)
@pytest.mark.parametrize("capacity", [1, 112, 512])
def test_bytes_are_the_formula_and_the_arrays(name, dtype, capacity):
    model = MODELS[name]
    config, cache = model.config, model.new_cache(dtype, capacity)
    keys = values = capacity * VECTOR_BYTES[dtype]
    if dtype.endswith("_channel"):
        # Full blocks of 32: codes without scales by token, and 24 scales; 96 newest as float16.
        block = {"int8_channel": 32 * 24 + 48, "int4_channel": 32 * 12 + 48}[dtype]
        keys = capacity // 32 * block + min(capacity, 96) * 48
    formula = config.n_layer * config.n_kv_head * (keys + values)
    assert cache.nbytes == cache.format.bytes(config, capacity) == formula
    assert sum(array.nbytes for array in cache.stored_arrays.values()) == formula


def test_bytes_of_the_article():
    target = MODELS["target"]
    sizes = [target.new_cache(d, 112).nbytes for d in ("float32", "float16", "int8")]
    assert sizes == [344_064, 172_032, 93_184]


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
    kept = data.draw(st.lists(st.integers(0, 95), min_size=1, max_size=80))
    dropped = data.draw(st.lists(st.integers(0, 95), min_size=1, max_size=65))
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
    largest = np.abs((keys if kind == "keys" else values).read(3)).max()
    assert largest == 448 if dtype == "fp8_e4m3" else largest > 1000  # fp8 saturates


@pytest.mark.parametrize("tokens", [[5], [5, 6]])
def test_weights_too_large_to_compute_with_are_refused(tokens):
    config = PRESETS["draft"]
    weights = random_weights(config)
    weights["lm_head.weight"] = np.float32(2e37) * np.sign(weights["lm_head.weight"])
    with pytest.raises(WeightsError, match="logits overflow in float32: load it with"):
        Transformer(config, weights).forward(tokens)
    assert np.isfinite(Transformer(config, weights, "float64").forward(tokens)).all()


@pytest.mark.parametrize("dtype", CACHE_DTYPES)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_logits_do_not_depend_on_how_tokens_are_divided_into_calls(dtype, data):
    """In float64, whose rounding moves no number across a step of the format."""
    model = FLOAT64_DRAFT
    tokens = data.draw(st.lists(st.integers(0, 95), min_size=2, max_size=120))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(tokens) - 1), max_size=5)))
    whole, parts = model.new_cache(dtype), model.new_cache(dtype)
    expected = model.forward(tokens, whole)
    edges = [0, *cuts, len(tokens)]
    found = [model.forward(tokens[a:b], parts) for a, b in pairwise(edges)]
    assert np.abs(np.concatenate(found) - expected).max() < 1e-9


@pytest.mark.parametrize("dtype", ["int8_channel", "int4_channel"])
def test_keys_by_channel_are_rewound_as_far_as_speculation_goes_and_no_further_in_a_block(dtype):
    model = MODELS["draft"]
    tokens = [position * 7 % 96 for position in range(400)]
    for length in range(335, 400):  # 65 tokens and fewer
        cache = model.new_cache(dtype)
        model.forward(tokens, cache, rows=0)
        cache.truncate(length)
    with pytest.raises(SettingError, match="truncate to a multiple of 32, or to 320 or more"):
        cache.truncate(319)
    assert cache.length == length
    fresh = model.new_cache(dtype)
    cache.truncate(288)
    model.forward(tokens[:288], fresh, rows=0)
    assert np.array_equal(model.forward(tokens[5:90], cache), model.forward(tokens[5:90], fresh))
    assert (cache.length, fresh.length) == (373, 373)


@pytest.mark.parametrize("dtype", ["int4", "int4_g8", "int4_channel"])
def test_vectors_that_cannot_be_packed_or_grouped_are_refused(dtype):
    odd = random_model(ModelConfig(n_layer=1, n_head=2, n_kv_head=2, width=14))
    with pytest.raises(SettingError, match="head_dim is 7: choose int8"):
        odd.new_cache(dtype)
    even = random_model(ModelConfig(n_layer=1, n_head=2, n_kv_head=2, width=24))
    if dtype == "int4_g8":
        with pytest.raises(SettingError, match="head_dim is 12: choose int4, or a model whose"):
            even.new_cache(dtype)
    else:
        assert even.new_cache(dtype, 3).dtype == dtype


def test_stored_arrays_cannot_be_written():
    arrays = MODELS["draft"].new_cache().stored_arrays
    with pytest.raises(ValueError, match="read-only"):
        arrays["0.keys.elements"][:] = 1


@pytest.mark.parametrize("dtype", PAGED_DTYPES)
def test_a_copy_goes_on_as_its_source(dtype):
    model = MODELS["draft"]
    source, copy = model.new_cache(dtype), model.new_cache(dtype, capacity=12)
    model.forward([1, 2, 3, 4, 5, 6, 7], source)
    model.forward([9] * 10, copy)
    copy.copy_from(source)
    assert copy.length == 7
    assert np.array_equal(model.forward([8, 9], copy), model.forward([8, 9], source))
    for mine, others in zip(copy.layers, source.layers, strict=True):
        for storage, other in zip(mine, others, strict=True):
            assert np.array_equal(storage.read(9), other.read(9))
    with pytest.raises(CacheOverflowError, match="capacity=9"):
        model.new_cache(dtype, capacity=5).copy_from(source)


def test_keys_by_channel_are_not_copied():
    cache = MODELS["target"].new_cache("int4_channel")
    with pytest.raises(SettingError, match="share their scales"):
        MODELS["target"].new_cache("int4_channel").copy_from(cache)
