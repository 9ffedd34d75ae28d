"""Codes, scales and rounding of groups, against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from switchgnn.host.reduce.scale import NOT_FINITE, GroupScale, group_codes

WORKERS = (1, 2, 3, 5, 8, 16, 127, 128)
float_bits = st.integers(0, 2**32 - 1)
MOST = 2**31


def floats(*bits):
    return np.array(bits, dtype=np.uint32).view(np.float32)


def code_by_definition(values):
    """The smallest code whose power of two bounds all values."""
    if not all(map(np.isfinite, values)):
        return 255
    largest = max(abs(Fraction(float(value))) for value in values)
    return next(code for code in range(255) if largest <= Fraction(2) ** (code - 126))


@given(st.lists(float_bits, min_size=1, max_size=20), st.integers(1, 7))
@example([0, 0x80000000], 1)
@example([1, 0x007FFFFF, 0x00800000, 0x00800001], 1)
@example([0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001], 1)
@example([exponent << 23 for exponent in range(255)], 1)
@example([exponent << 23 | 1 for exponent in range(255)], 1)
def test_codes_are_the_smallest_that_bound_a_group(bits, group):
    values = floats(*bits)
    parts = [values[start : start + group] for start in range(0, len(values), group)]
    assert group_codes(values, group).tolist() == list(map(code_by_definition, parts))


def test_no_values_have_no_groups():
    assert len(group_codes(np.zeros(0, dtype=np.float32), 4)) == 0


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("stochastic", [False, True])
def test_sums_of_the_largest_words_stay_in_the_range(workers, words, stochastic):
    """Also with the numbers that a generator draws least and most.

    The second word is largest half of a step of the first one above or below a whole number.
    """
    generators = [Constant(0), Constant(2**16 - 1)] if stochastic else [None]
    for code in range(255):
        scale = GroupScale(code, workers, words)
        for size in (2.0 ** (code - 126), 0.5 / scale.factor, 1.5 / scale.factor):
            value = np.float32(min(size, float(np.finfo(np.float32).max)))
            for generator in generators:
                steps = scale.quantise(np.array([value, -value]), generator).astype(object)
                assert all(-MOST <= step * workers < MOST for step in steps)
                assert size < scale.bound or steps[0] > 0 > steps[words]


class Constant:
    """A generator that always draws the same."""

    def __init__(self, number):
        self.number = number

    def integers(self, low, high, size, dtype):
        assert low <= self.number < high
        return np.full(size, self.number, dtype=dtype)


@given(st.sampled_from(WORKERS), st.data(), st.sampled_from([1, 2]), st.booleans())
def test_sums_are_within_the_bound(workers, data, words, stochastic):
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    row = st.lists(finite, min_size=3, max_size=3)
    values = [np.array(data.draw(row), dtype=np.float32) for _ in range(workers)]
    scale = GroupScale(max(int(group_codes(each, 3)[0]) for each in values), workers, words)
    generator = np.random.default_rng(workers) if stochastic else None
    total = sum(scale.quantise(each, generator).astype(object) for each in values)
    result = np.zeros(3, dtype=np.float32)
    scale.dequantise(np.array(total, dtype=np.int32), result)
    bound = Fraction(scale.error_bound(stochastic=stochastic))
    for index, found in enumerate(result):
        exact = sum(Fraction(float(each[index])) for each in values)
        if not np.isfinite(found):
            assert abs(exact) + bound > Fraction(float(np.finfo(np.float32).max))
            continue
        rounding = abs(exact) * Fraction(1, 2**23) + Fraction(1, 2**149)
        assert abs(Fraction(float(found)) - exact) <= bound * (1 + Fraction(1, 2**20)) + rounding


def exponent_of(value):
    """The least e with a magnitude of at most 2^e, as docs/allreduce.md has it."""
    return next(e for e in range(-126, 129) if abs(Fraction(float(value))) <= Fraction(2) ** e)


@pytest.mark.parametrize("workers", WORKERS)
def test_two_words_are_exact_to_the_rounding_of_float32(workers):
    """Where magnitudes of one group are 2^-60 to 2^60, for all that are not far below the largest.

    A sum of float32 in any order is off by more.
    """
    generator = np.random.default_rng(workers)
    values = generator.standard_normal((workers, 4000)) * 2.0 ** generator.integers(-60, 61, 4000)
    values = values.astype(np.float32)
    scale = GroupScale(max(int(group_codes(each, 4000)[0]) for each in values), workers, words=2)
    words = np.sum([scale.quantise(each) for each in values], axis=0, dtype=np.int64)
    found = np.zeros(4000, dtype=np.float32)
    scale.dequantise(words.astype(">i4"), found)
    exponent, k = exponent_of(np.abs(values).max()), workers.bit_length()
    bound = workers * Fraction(2) ** (exponent - 64 + 2 * k)
    above = 0
    for index, result in enumerate(found):
        exact = sum(Fraction(float(each)) for each in values[:, index])
        error = abs(Fraction(float(result)) - exact)
        # Half of the last index, and float64's roundings.
        half = Fraction(float(np.spacing(np.float32(abs(exact))))) / 2
        assert error <= bound + half * (1 + Fraction(1, 2**20))
        above += bound < half
    # The magnitudes of the upper 40 - 3 k bits.
    assert above > 4000 * (40 - 3 * k) / 121 * 0.8


@pytest.mark.parametrize("words", [1, 2])
def test_stochastic_rounding_has_the_right_mean(words):
    scale, generator = GroupScale(126, 1, words), np.random.default_rng(1)
    value = np.full(200_000, 0.3 / (scale.factor * scale.finer), dtype=np.float32)
    steps = scale.quantise(value, generator)[words - 1 :: words]
    assert set(steps.tolist()) == {0, 1}
    assert abs(steps.mean() - 0.3) < 0.01


def test_whole_numbers_of_steps_are_never_rounded_away():
    scale = GroupScale(126, 1)
    values = (np.arange(-4, 5) / scale.factor).astype(np.float32)
    exact = np.rint(values.astype(np.float64) * scale.factor)
    near = np.abs(values.astype(np.float64) * scale.factor - exact) < 2**-18
    for number in (0, 2**16 - 1):
        steps = scale.quantise(values, Constant(number))
        assert (steps[near] == exact[near]).all()


def test_groups_with_nan_become_nan_and_send_zeros():
    for words in (1, 2):
        scale = GroupScale(NOT_FINITE, 3, words)
        assert scale.quantise(floats(0x7FC00000, 0x3F800000)).tolist() == words * [0, 0]
        result = np.zeros(2, dtype=np.float32)
        scale.dequantise(np.arange(2 * words, dtype=">i4"), result)
        assert np.isnan(result).all()


def test_an_average_is_divided_before_it_is_rounded():
    scale = GroupScale(126 + 127, 3)
    value = np.array([2.0**127], dtype=np.float32)
    result = np.zeros(1, dtype=np.float32)
    scale.dequantise(scale.quantise(value) * np.int32(3), result, divisor=3)
    assert result[0] == pytest.approx(2.0**127, rel=1e-7)
    scale.dequantise(scale.quantise(value) * np.int32(3), result)
    assert result[0] == np.inf
