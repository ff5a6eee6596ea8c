"""Each storage against an oracle that works number by number, and bit for bit with itself."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.cache import CACHE_DTYPES, format_of
from tinyllm.cache.channels import ChannelStorage
from tinyllm.cache.dense import new_storage
from tinyllm.cache.storage import StorageShape
from tinyllm.errors import SettingError

HEADS, DIM, CAPACITY = 2, 8, 200
FLOAT32 = np.dtype("float32")
# Exponent bits, mantissa bits, largest finite number.
SHORT_FLOATS = {
    "float16": (5, 10, 65504.0),
    "bfloat16": (8, 7, 3.3895314e38),
    "fp8_e4m3": (4, 3, 448.0),
    "fp8_e5m2": (5, 2, 57344.0),
}


def vectors(seed: int, count: int, spread: float = 1.0) -> np.ndarray:
    """(count, G, D) normal numbers; every fifth vector is zero, a dimension stands out."""
    drawn = np.random.default_rng(seed).normal(0, spread, (count, HEADS, DIM)).astype(np.float32)
    drawn[::5] = 0
    drawn[:, :, 3] *= 20
    return drawn


def storage(dtype: str, dims_first: bool):
    return new_storage(StorageShape(HEADS, DIM, CAPACITY, dims_first), format_of(dtype), FLOAT32)


def read(one, stop: int, dims_first: bool) -> np.ndarray:
    """(stop, G, D) of what is read."""
    return one.read(stop).transpose((2, 0, 1) if dims_first else (1, 0, 2))


def short_float(value: float, dtype: str) -> float:
    """The nearest number of the type, ties to the even mantissa, from its definition."""
    exponent_bits, mantissa_bits, largest = SHORT_FLOATS[dtype]
    lowest = 2 - 2 ** (exponent_bits - 1)  # exponent of the smallest normal numbers
    if value == 0:
        return 0.0
    exponent = max(int(np.floor(np.log2(abs(float(value))))), lowest)
    step = 2.0 ** (exponent - mantissa_bits)
    rounded = float(np.rint(float(value) / step)) * step
    return float(np.clip(rounded, -largest, largest))


def integers(numbers: list[np.float32], limit: int) -> list[np.float32]:
    """Numbers that share a scale, there and back, one by one."""
    scale = np.float16(max(abs(number) for number in numbers) / np.float32(limit))
    if scale == 0:
        return [np.float32(0)] * len(numbers)
    scale = np.float32(scale)
    codes = [min(max(round(float(number / scale)), -limit), limit) for number in numbers]
    return [np.float32(code) * scale for code in codes]


def by_token(written: np.ndarray, limit: int, group: int) -> np.ndarray:
    expected = np.empty_like(written)
    for token, head in np.ndindex(written.shape[:2]):
        for first in range(0, DIM, group):
            here = np.s_[token, head, first : first + group]
            expected[here] = integers(list(written[here]), limit)
    return expected


def by_channel(written: np.ndarray, limit: int) -> np.ndarray:
    """What the row at the last position reads: its own block as float16, those before as codes."""
    halves = written.astype(np.float16).astype(np.float32)
    expected = halves.copy()
    for start in range(0, (len(written) - 1) // 32 * 32, 32):
        for head, channel in np.ndindex(HEADS, DIM):
            here = np.s_[start : start + 32, head, channel]
            expected[here] = integers(list(halves[here]), limit)
    return expected


def oracle(written: np.ndarray, dtype: str, dims_first: bool) -> np.ndarray:
    if dtype == "float32":
        return written
    if dtype in SHORT_FLOATS:
        return np.vectorize(lambda value: short_float(value, dtype))(written).astype(np.float32)
    limit = 127 if dtype.startswith("int8") else 7
    if dtype.endswith("_channel") and dims_first:
        return by_channel(written, limit)
    return by_token(written, limit, 8)


@pytest.mark.parametrize("dims_first", [True, False])
@pytest.mark.parametrize("dtype", CACHE_DTYPES)
@pytest.mark.parametrize("spread", [1e-7, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("count", [1, 32, 33, 70])
def test_what_is_read_is_what_the_oracle_makes_of_it(dtype, dims_first, spread, count):
    one, written = storage(dtype, dims_first), vectors(1, count, spread)
    one.write(0, written)
    found = read(one, count, dims_first)
    assert found.dtype == np.float32
    assert np.array_equal(found, oracle(written, dtype, dims_first))


def test_groups_have_a_scale_each():
    shape = StorageShape(HEADS, 24, 10, True)
    one = new_storage(shape, format_of("int4_g8"), FLOAT32)
    written = np.random.default_rng(0).normal(0, 1, (10, HEADS, 24)).astype(np.float32)
    one.write(0, written)
    for group in range(3):
        part = np.s_[:, :, 8 * group : 8 * group + 8]
        assert np.array_equal(read(one, 10, True)[part], by_token(written[part], 7, 8))
    assert one.arrays["scales"].shape == (HEADS, 3, 10)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (k, n)
        for k, n in (
            ("fp8_e4m3", "float8_e4m3fn"),
            ("fp8_e5m2", "float8_e5m2"),
            ("float16", "float16"),
        )
    ],
)
def test_every_pattern_is_widened_exactly(dtype, name):
    stored = np.dtype(getattr(ml_dtypes, name, name))
    patterns = np.arange(2 ** (8 * stored.itemsize)).astype(f"uint{8 * stored.itemsize}")
    numbers = patterns.view(stored).astype(np.float32)
    numbers = numbers[np.isfinite(numbers) | (np.isinf(numbers) & (dtype == "float16"))]
    shape = StorageShape(1, 1, len(numbers), True)
    one = new_storage(shape, format_of(dtype), FLOAT32)
    one.write(0, numbers[:, None, None])
    with np.errstate(over="ignore"):
        found = one.read(len(numbers))[0, 0]
    assert np.array_equal(found, numbers)
    assert np.array_equal(np.signbit(found), np.signbit(numbers))


@pytest.mark.parametrize(("dtype", "largest"), [("fp8_e4m3", 448), ("fp8_e5m2", 57344)])
def test_fp8_saturates(dtype, largest):
    one = storage(dtype, True)
    beyond = np.full((1, HEADS, DIM), 1e6, np.float32)
    beyond[0, 0] = -np.inf
    one.write(0, beyond)
    one.write_one(1, beyond[0])
    for token in range(2):
        assert (read(one, 2, True)[token] == np.array([[-largest], [largest]])).all()


def test_a_code_of_a_scale_that_was_rounded_down_is_clipped():
    one = storage("int8", True)
    tiny = np.full((1, HEADS, DIM), 127 * 2.0**-24 * 1.4, np.float32)  # scale 1.4 -> 1 subnormal
    one.write(0, tiny)
    assert (one.arrays["codes"][:, :, 0] == 127).all()


@pytest.mark.parametrize("dims_first", [True, False])
@pytest.mark.parametrize("dtype", CACHE_DTYPES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_writes_and_rewinds_leave_what_the_kept_vectors_alone_would(dtype, dims_first, data):
    """Storages are compared bit for bit in what is read, at every length on the way."""
    one, kept = storage(dtype, dims_first), np.zeros((0, HEADS, DIM), np.float32)
    furthest = 0
    for turn in range(data.draw(st.integers(1, 6))):
        new = vectors(turn, data.draw(st.integers(1, min(70, CAPACITY - len(kept)))))
        if len(new) == 1:
            one.write_one(len(kept), new[0])
        else:
            one.write(len(kept), new)
        kept = np.concatenate([kept, new])
        furthest = max(furthest, len(kept))
        fresh = storage(dtype, dims_first)
        for position, vector in enumerate(kept):
            fresh.write_one(position, vector)
        assert np.array_equal(one.read(len(kept)), fresh.read(len(kept)))
        length = data.draw(st.integers(min(max(0, furthest - 65), len(kept)), len(kept)))
        one.rewind(length)
        kept = kept[:length]
        if len(kept) >= CAPACITY - 1:
            return


@pytest.mark.parametrize("dtype", CACHE_DTYPES)
def test_at_once_and_one_by_one_store_the_same_bits(dtype):
    for dims_first in (True, False):
        together, single = storage(dtype, dims_first), storage(dtype, dims_first)
        written = vectors(4, CAPACITY, 50.0)
        together.write(0, written)
        for position, vector in enumerate(written):
            single.write_one(position, vector)
        assert together.nbytes == single.nbytes
        for name, array in together.arrays.items():
            assert array.tobytes() == single.arrays[name].tobytes()


def test_writing_into_a_block_whose_floats_are_gone_is_refused():
    """As after a call that failed halfway, many tokens on."""
    one = storage("int8_channel", True)
    assert isinstance(one, ChannelStorage)
    one.write(0, vectors(0, 40))
    one.write(40, vectors(1, 150))
    with pytest.raises(SettingError, match="multiple of 32, or to 96 or more"):
        one.write_one(40, vectors(2, 1)[0])
    one.write_one(64, vectors(2, 1)[0])


def test_int4_is_two_to_a_byte_and_int8_one_with_float16_scales():
    eight, four = storage("int8", False).arrays, storage("int4", False).arrays
    assert (eight["codes"].dtype, eight["codes"].shape) == (np.int8, (HEADS, DIM, CAPACITY))
    assert (four["codes"].dtype, four["codes"].shape) == (np.uint8, (HEADS, DIM // 2, CAPACITY))
    for arrays in (eight, four):
        assert arrays["scales"].dtype == np.float16
        assert arrays["scales"].shape == (HEADS, 1, CAPACITY)
