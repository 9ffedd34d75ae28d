"""Codes, scales and rounding of fragments, against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from switchgnn.host.reduce import scale
from switchgnn.host.reduce.scale import NOT_FINITE, FragmentScales, group_codes
from tests.host.reduce.switch_model import largest_error

F32 = np.float32
WORKERS = (1, 2, 3, 5, 8, 16, 127, 128)


def floats(*bits):
    return np.array(bits, dtype=np.uint32).view(np.float32)


def code_by_definition(values):
    if not all(map(np.isfinite, values)):
        return 255
    largest = max(abs(Fraction(float(value))) for value in values)
    return next(code for code in range(255) if largest <= Fraction(2) ** (code - 126))


@given(st.lists(st.integers(0, 2**32 - 1), max_size=20), st.integers(1, 7))
@example([], 4)
@example([0, 0x80000000], 1)
@example([1, 0x007FFFFF, 0x00800000, 0x00800001], 1)
@example([0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001], 1)
@example([exponent << 23 for exponent in range(255)], 1)
@example([exponent << 23 | 1 for exponent in range(255)], 1)
def test_codes_are_the_smallest_that_bound_a_group(bits, group):
    values = floats(*bits)
    parts = [values[start : start + group] for start in range(0, len(values), group)]
    assert group_codes(values, group).tolist() == list(map(code_by_definition, parts))


def added(lanes, times):
    """The sum of equal contributions, as the switch adds: modulo 2^32."""
    sums = np.zeros((len(lanes), 256), dtype=">u4")
    sums[:, : lanes.shape[1]] = lanes.view(">u4").astype(np.uint32) * np.uint32(times)
    return sums.view(">i4")


def units(scales, sums, numbers, divisor=1):
    out = np.zeros((len(scales.codes), numbers), dtype=np.float32)
    scales.dequantise(sums, out, divisor)
    return out


@pytest.mark.parametrize("bits", [32, 48])
@pytest.mark.parametrize("workers", range(1, 129))
def test_no_part_of_a_sum_carries_or_wraps(workers, bits):
    """A part that is largest at all workers, beside one that is smallest, at every scale."""
    codes = np.arange(60, 240, dtype=np.uint8)
    scales, most = FragmentScales(codes, workers, bits), 2.0 ** (codes - 126.0)
    step = 2.0 ** (workers.bit_length() - 31.0) * most
    lower = step * (1 - 2.0 ** -(16 - (workers - 1).bit_length()))
    # The lower parts are 0, all ones, 0, all ones, as step - lower is the least number.
    given = [most, lower, -most, lower - step, -most, most - lower, step - most, most]
    values = np.array(given, dtype=F32).T
    exact = values.astype(np.float64) * workers
    error = np.abs(units(scales, added(scales.quantise(values), workers), 8) - exact)
    assert (error <= scales.error_bounds()[:, np.newaxis] + np.abs(exact) * 2.0**-24).all()


def test_lanes_have_the_upper_parts_and_then_the_lower_ones():
    """Of 8 workers: 28 bits and 13."""
    scales = FragmentScales(np.array([126], np.uint8), 8)
    steps = [1 << 40, -(1 << 40), -1, 8193, 8191]
    lanes = scales.quantise(np.array([steps], dtype=F32) / F32(2**40))
    lower = [0 << 16 | 0, 8191 << 16 | 1, 8191 << 16]
    assert lanes[0].tolist() == [1 << 27, -(1 << 27), -1, 1, 0, *lower]


@given(st.sampled_from(WORKERS), st.data(), st.sampled_from([32, 48]))
def test_sums_are_within_the_bound(workers, data, bits):
    """Also of small numbers in a fragment with large ones."""
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    row = st.lists(finite, min_size=6, max_size=6)
    values = np.array([data.draw(row) for _ in range(workers)], dtype=F32)
    codes = np.max([group_codes(each, 3) for each in values], axis=0)
    scales = FragmentScales(codes, workers, bits)
    lanes = [scales.quantise(each.reshape(2, 3)) for each in values]
    total = np.sum(lanes, axis=0, dtype=np.int64).astype(">i4")
    for index, result in enumerate(units(scales, added(total, 1), 3).reshape(-1)):
        exact = sum(Fraction(float(each)) for each in values[:, index])
        bound = largest_error(workers, int(codes[index // 3]) - 126, bits)
        assert scales.error_bounds()[index // 3] == pytest.approx(float(bound))
        if not np.isfinite(result):
            assert abs(exact) + bound > Fraction(float(np.finfo(F32).max))
            continue
        rounding = abs(exact) * Fraction(1, 2**23) + Fraction(1, 2**149)
        assert abs(Fraction(float(result)) - exact) <= bound * (1 + Fraction(1, 2**20)) + rounding


@pytest.mark.parametrize("bits", [32, 48])
def test_fragments_with_nan_become_nan_and_send_zeros(bits):
    scales = FragmentScales(np.array([NOT_FINITE, 127], np.uint8), 3, bits)
    values = floats(0x7FC00000, 0x7F800001, 0x7F800000, 0x3F800000, 0x3F800000, 0).reshape(2, 3)
    lanes = scales.quantise(values)
    assert (lanes[0].tolist(), bool(lanes[1].any())) == ([0] * lanes.shape[1], True)
    assert np.isnan(units(scales, added(lanes, 1), 3)).tolist() == [[True] * 3, [False] * 3]


def test_an_average_is_divided_before_it_is_rounded():
    scales = FragmentScales(np.array([126 + 127], np.uint8), 3)
    sums = added(scales.quantise(np.array([[2.0**127]], dtype=F32)), 3)
    assert units(scales, sums, 1, divisor=3)[0, 0] == F32(2.0**127)
    assert units(scales, sums, 1)[0, 0] == np.inf


@pytest.mark.parametrize("workers", range(1, 129))
def test_one_fragment_holds_the_codes_of_all_workers(workers):
    """Those of 256 fragments but the first group's."""
    _, each = scale.fragment_codes(np.zeros(256 * 170, dtype=F32), workers, 512, 48, 256)
    codes = np.zeros(-(-256 // each) - 1, dtype=np.uint8)
    assert scale.separate_codes(codes, 0, workers).size <= 256
