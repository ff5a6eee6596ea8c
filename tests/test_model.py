"""The engine against the plain engine, and against itself fed in other portions."""

import numpy as np
import pytest

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.errors import CacheOverflowError, ContextOverflowError, SettingError, TokenError
from tinyllm.experiments.decode import EQUALITY_BOUNDS, equality
from tinyllm.experiments.reference import PlainCache, plain_forward
from tinyllm.loading import MODELS, load_weights
from tinyllm.model import Transformer, random_weights


def noisy_weights(config, seed=1):
    """Random weights in which gains, biases and sizes are off their start values."""
    rng = np.random.default_rng(seed)
    return {
        name: weight.astype(np.float64) * (4 if weight.ndim == 2 else 1)
        + rng.normal(0, 0.1, weight.shape[-1:])
        for name, weight in random_weights(config, seed).items()
    }


def some_tokens(count, seed=0):
    return np.random.default_rng(seed).integers(0, 96, count).tolist()


@pytest.mark.parametrize("name", ["target", "draft"])
@pytest.mark.parametrize("tokens", [1, 2, 5, 63, 64, 65, 200, 512])
def test_equals_the_plain_engine(name, tokens):
    config, fed = PRESETS[name], some_tokens(tokens)
    weights = noisy_weights(config)
    plain = plain_forward(weights, config, fed, PlainCache(config, 512, "float64"))
    assert np.abs(Transformer(config, weights, "float64").forward(fed) - plain).max() < 1e-12


def test_equals_the_plain_engine_on_the_trained_target(target64):
    config, fed = target64.config, some_tokens(150)
    weights = load_weights(MODELS / "target", config)
    weights = {name: weight.astype(np.float64) for name, weight in weights.items()}
    plain = plain_forward(weights, config, fed, PlainCache(config, 512, "float64"))
    assert np.abs(target64.forward(fed) - plain).max() < 1e-11


def test_grouped_heads_equal_multi_head_with_repeated_kv_heads():
    grouped = PRESETS["target-kv2"]
    weights = noisy_weights(grouped)
    repeated = dict(weights)
    for layer in range(grouped.n_layer):
        name = f"h.{layer}.attn.c_attn.weight"
        q, k, v = np.split(weights[name], [96, 144], axis=1)
        spread = [w.reshape(96, 2, 24).repeat(2, axis=1).reshape(96, 96) for w in (k, v)]
        repeated[name] = np.concatenate([q, *spread], axis=1)
    fed = some_tokens(80)
    multi_head = Transformer(PRESETS["target"], repeated, "float64")
    few_heads = Transformer(grouped, weights, "float64")
    assert np.abs(multi_head.forward(fed) - few_heads.forward(fed)).max() < 1e-12


@pytest.mark.parametrize("name", ["target", "target-kv2", "target-kv1", "draft"])
@pytest.mark.parametrize("portions", [[1] * 40, [40], [39, 1], [7, 1, 2, 30], [1, 39]])
def test_any_portions_give_the_same_logits(name, portions):
    config, fed = PRESETS[name], some_tokens(40)
    model = Transformer(config, noisy_weights(config), "float64")
    cache = model.new_cache()
    rows = [model.forward(fed[cache.length : cache.length + n], cache) for n in portions]
    assert np.abs(np.concatenate(rows) - model.forward(fed)).max() < 1e-12
    assert cache.length == 40


@pytest.mark.parametrize("model", ["target", "target64"])
def test_cached_and_uncached_decoding_agree(model, request):
    model = request.getfixturevalue(model)
    found = equality(model)
    assert found.same_tokens
    assert max(found.differences) <= EQUALITY_BOUNDS[model.dtype.name]


def test_rows_asks_for_the_last_logits_only(target64):
    fed = some_tokens(9)
    whole = target64.forward(fed)
    for rows in (0, 1, 5, 9):
        last = target64.forward(fed, rows=rows)
        assert np.allclose(last, whole[9 - rows :], rtol=0, atol=1e-12)
    assert target64.forward(fed[:1], rows=0).shape == (0, 96)


@pytest.mark.parametrize("portion", [1, 3])
def test_errors_leave_the_cache_as_it_was(target, portion):
    cache = target.new_cache(capacity=10)
    target.forward(some_tokens(10 - portion + 1), cache)
    before = {name: array.copy() for name, array in cache.stored_arrays.items()}
    with pytest.raises(CacheOverflowError, match=r"room for 10 tokens and 11 would be needed"):
        target.forward(some_tokens(portion), cache)
    for bad in ([], [96], [-1], [0] * (portion - 1) + [96]):
        with pytest.raises(TokenError):
            target.forward(bad, cache)
    assert cache.length == 10 - portion + 1
    assert all(np.array_equal(before[name], a) for name, a in cache.stored_arrays.items())


def test_the_context_has_an_end(target):
    cache = target.new_cache(capacity=600)
    target.forward(some_tokens(512), cache)
    with pytest.raises(ContextOverflowError, match="512 positions and 513 would be needed"):
        target.forward([0], cache)
    with pytest.raises(ContextOverflowError, match="shorten the text by 88 tokens"):
        target.forward(some_tokens(600))
    assert cache.length == 512


@pytest.mark.parametrize(
    "tokens",
    [
        [1.0],
        [1, 2.5],
        np.array([1.0, 2.0]),
        np.array([[1, 2], [3, 4]]),
        np.array([[1], [2]]),
        np.array(3),
        np.array([True, False]),
        [True],
        ["a"],
        "import ",
        [None],
        None,
        5,
        [[1, 2]],
    ],
    ids=repr,
)
def test_what_is_no_row_of_token_ids_is_refused(target, tokens):
    cache = target.new_cache()
    with pytest.raises(TokenError, match="a row of whole numbers from 0 to 95: "):
        target.forward(tokens, cache)
    assert cache.length == 0


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_a_row_may_be_numpys(target, dtype):
    tokens = some_tokens(7)
    assert np.array_equal(target.forward(np.array(tokens, dtype)), target.forward(tokens))
    assert np.array_equal(target.forward(np.array([5], dtype)), target.forward([5]))


@pytest.mark.parametrize("rows", [-1, 4])
def test_rows_outside_the_new_tokens_are_refused(target, rows):
    with pytest.raises(SettingError, match=r"rows must lie in 0\.\.3"):
        target.forward([1, 2, 3], rows=rows)


def test_another_models_cache_is_refused(target, draft):
    cache = draft.new_cache()
    with pytest.raises(SettingError, match="of another model: make one with target's new_cache"):
        target.forward([1, 2], cache)
    assert cache.length == 0


def test_unknown_dtypes_are_refused(target):
    with pytest.raises(SettingError, match="float32 or float64"):
        Transformer(ModelConfig(), random_weights(ModelConfig()), "float16")
    with pytest.raises(SettingError, match="'int3' is unknown; choose float32, float16, bfloat16"):
        target.new_cache("int3")


def test_a_model_of_one_symbol_and_one_position():
    config = ModelConfig(1, 1, 1, 1, 1, 2)
    model = Transformer(config, random_weights(config))
    assert model.forward([0]).shape == (1, 1)
