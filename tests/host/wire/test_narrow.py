"""Narrow bodies hold the numbers that they were made of, at the indices that the page says."""

import math

import numpy as np
import pytest

from switchgnn.host.wire.header import allowed_bits
from switchgnn.host.wire.narrow import bits_needed, pack_lanes, unpack_lanes

LANES = (8, 16, 32, 64, 128, 256)
NARROW = [(lanes, bits) for lanes in LANES for bits in allowed_bits(lanes)]


def drawn(lanes, bits, rows=5):
    generator = np.random.default_rng((lanes, bits))
    reach = 1 << (bits - 1) if bits else 0
    return generator.integers(-reach, max(1, reach), (rows, lanes)).astype(np.int32)


def test_short_bodies_are_not_narrow():
    assert allowed_bits(8) == (0, 32)
    assert allowed_bits(16) == (0, 16, 32)
    assert allowed_bits(24) == (0, 8, 16, 32)


@pytest.mark.parametrize(("lanes", "bits"), NARROW)
def test_what_is_packed_comes_back(lanes, bits):
    values = drawn(lanes, bits)
    bodies = pack_lanes(values, bits)
    assert bodies.shape == (5, 32 * math.ceil(lanes * bits / 256))
    assert np.array_equal(unpack_lanes(bodies, lanes, bits), values)


@pytest.mark.parametrize(("lanes", "bits"), [pair for pair in NARROW if pair[1] in (8, 16)])
def test_each_number_is_where_the_page_says(lanes, bits):
    values = drawn(lanes, bits, rows=1)
    body = pack_lanes(values, bits)[0].tobytes()
    parts = 32 // bits
    for lane, value in enumerate([*values[0].tolist(), *[0] * (-lanes % (8 * parts))]):
        group, place = divmod(lane, 8)
        at = group // parts * 32 + place * 4 + group % parts * bits // 8
        assert int.from_bytes(body[at : at + bits // 8], "big") == value + (1 << (bits - 1))


@pytest.mark.parametrize(
    ("least", "most", "bits"),
    [
        *((0, 0, 0), (-128, 127, 8), (-129, 0, 16), (0, 128, 16)),
        *((-(2**15), 2**15 - 1, 16), (0, 2**15, 32), (-(2**31), 2**31 - 1, 32)),
    ],
)
def test_a_row_gets_the_fewest_bits_that_hold_it(least, most, bits):
    row = np.zeros((1, 64), dtype=np.int32)
    row[0, 3], row[0, 60] = least, most
    assert bits_needed(row).tolist() == [bits]


def test_narrow_rows_of_few_lanes_take_more():
    assert bits_needed(np.full((1, 8), 1, dtype=np.int32)).tolist() == [32]
    assert bits_needed(np.full((1, 16), 1, dtype=np.int32)).tolist() == [16]
