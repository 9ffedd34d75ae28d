"""Numbers in 8 and 16 bits stay within half a step, and flags and words are the same bit by bit."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from switchgnn.host.base.errors import FeatureError
from switchgnn.host.direct.compressed import Quantiser, flag_rows, pack_flags, unpack_flags

BITS = (8, 16)
numbers = st.floats(-(2.0**126), 2.0**126, width=32)
rows_of_any_shape = arrays(np.float32, array_shapes(min_dims=2, max_dims=2), elements=numbers)


def through(quantiser, rows):
    return quantiser.unpack(quantiser.pack(rows), rows.shape[1])


def half_a_step(rows, bits):
    """float64[K, 1], and what float32 adds: a rounding of the row's range and of its result."""
    low, high = (each(axis=1, keepdims=True).astype(np.float64) for each in (rows.min, rows.max))
    span, largest = high - low, np.maximum(abs(low), abs(high))
    # A subnormal step is off by half of 2^-149 at most, and there are up to 2^16 steps.
    return span / (2 * (2**bits - 1)) + 2.0**-22 * (span + largest) + 2.0**-133


@pytest.mark.parametrize("bits", BITS)
@given(rows=rows_of_any_shape)
def test_numbers_are_off_by_half_a_step(bits, rows):
    got = through(Quantiser(bits), rows)
    assert got.dtype == np.float32
    assert got.shape == rows.shape
    assert np.all(np.abs(got.astype(np.float64) - rows) <= half_a_step(rows, bits))


@pytest.mark.parametrize("bits", BITS)
def test_the_bound_is_tight(bits):
    """So many steps there are, and no fewer: halfway between two codes is half a step off."""
    steps = 2**bits - 1
    rows = np.array([[0, 0.5, 100.5, steps - 1.5, steps]], dtype=np.float32)
    assert through(Quantiser(bits), rows).tolist() == [[0, 1, 101, steps - 1, steps]]


@pytest.mark.parametrize("bits", BITS)
@given(value=st.floats(allow_nan=False, allow_infinity=False, width=32), width=st.integers(1, 9))
def test_constant_rows_are_exact(bits, value, width):
    rows = np.full((2, width), value, dtype=np.float32)
    with np.errstate(invalid="raise", divide="raise"):
        assert np.array_equal(through(Quantiser(bits), rows), rows)


def test_bytes_of_a_row():
    """Minimum and maximum, then the codes in their order, then zeros up to a whole word."""
    rows = np.array([[-1, 254, 0, 7, 8]], dtype=np.float32)
    wire = Quantiser(8).pack(rows).astype(">f4").tobytes()
    assert wire == struct.pack(">ff8B", -1, 254, 0, 255, 1, 8, 9, 0, 0, 0)
    rows = np.array([[0, 65535, 258]], dtype=np.float32)
    wire = Quantiser(16).pack(rows).astype(">f4").tobytes()
    assert wire == struct.pack(">ff4H", 0, 65535, 0, 65535, 258, 0)


@pytest.mark.parametrize("bits", BITS)
def test_stochastic_rounding_is_right_on_average(bits):
    """An error of up to a step each time; the mean of 4,000 is off by 6 standard errors at most."""
    times = 4000
    row = np.array([0, 0.25, 7.5, 100.9, 2**bits - 1], dtype=np.float32)
    got = through(Quantiser(bits, np.random.default_rng(1)), np.tile(row, (times, 1)))
    assert np.all(np.abs(got - row) < 1)
    assert np.all(got[:, [0, 4]] == row[[0, 4]])
    rest = row - np.floor(row)
    error = np.sqrt(rest * (1 - rest) / times)
    assert np.all(np.abs(got.mean(axis=0, dtype=np.float64) - row) <= 6 * error)
    again = through(Quantiser(bits, np.random.default_rng(1)), np.tile(row, (times, 1)))
    assert np.array_equal(got, again)


@pytest.mark.parametrize(
    "row", [[np.nan, 1], [np.inf, 1], [-np.inf, np.inf], [-3e38, 3e38], [np.nan, np.nan]]
)
def test_what_has_no_code_is_refused(row):
    with pytest.raises(FeatureError, match="must be finite"):
        Quantiser(8).pack(np.array([[1, 2], row], dtype=np.float32))


@given(st.lists(st.integers(0, 600), min_size=1, max_size=5), st.integers(0, 2**32))
def test_flags_are_the_same_at_the_other_end(sizes, seed):
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    flags = np.random.default_rng(seed).random(indptr[-1]) < 0.5
    words = pack_flags(flags, indptr)
    assert words.shape == (sum(-(-size // 256) for size in sizes), 8)
    assert np.diff(flag_rows(indptr)).tolist() == [-(-size // 256) for size in sizes]
    assert np.array_equal(unpack_flags(words, indptr), flags)
