"""Numbers in fewer bits on the wire: those that fit in 16 or 8 bits, and rows of zeros.

Nothing is lost: a frame gets the fewest bits that hold all its numbers. With b bits, x is sent as
the unsigned number x + 2^(b-1). 32 / b groups of 8 lanes, the last filled with zeros, become one
group of 8 words: a word has the lanes at its place in each, the first in its upper bits. The
switch widens them with masks, and needs no sign extension.
"""

import numpy as np

from switchgnn.base.array_types import Int32s, UInt8s, UInt32s
from switchgnn.host.wire.header import GROUP_BYTES, allowed_bits

_WORD_BITS = 32
_GROUP = GROUP_BYTES * 8 // _WORD_BITS


def bits_needed(values: Int32s) -> UInt8s:
    """Return uint8[K], the fewest bits that hold the numbers of each row, int32[K, W]."""
    if not values.size:
        return np.zeros(len(values), dtype=np.uint8)
    low, high = values.min(axis=1).astype(np.int64), values.max(axis=1).astype(np.int64)
    # x fits if -2^(b-1) <= x < 2^(b-1).
    reach = np.maximum(high + 1, -low)
    needed = np.full(len(values), _WORD_BITS, dtype=np.uint8)
    for bits in reversed(allowed_bits(values.shape[1])[:-1]):
        fits = reach <= 1 << (bits - 1) if bits else (low == 0) & (high == 0)
        needed[fits] = bits
    return needed


def pack_lanes(values: Int32s, bits: int) -> UInt8s:
    """Return uint8[K, B], the bodies of rows int32[K, W] that fit in these bits."""
    rows, lanes = values.shape
    if bits == 0:
        return np.zeros((rows, 0), dtype=np.uint8)
    if bits == _WORD_BITS:
        words = np.ascontiguousarray(values, dtype=">i4")
        return words.view(np.uint8).reshape(rows, 4 * lanes)
    parts = _WORD_BITS // bits
    groups = -(-lanes // (parts * _GROUP))
    padded = np.zeros((rows, groups, parts, _GROUP), dtype=np.int32)
    padded.reshape(rows, groups * parts * _GROUP)[:, :lanes] = values
    biased = (padded + np.int32(1 << (bits - 1))).astype(np.uint32) << _shifts(bits)
    packed: UInt8s = np.bitwise_or.reduce(biased, axis=2).astype(">u4").view(np.uint8)
    return packed.reshape(rows, groups * GROUP_BYTES)


def unpack_lanes(bodies: UInt8s, lanes: int, bits: int) -> Int32s:
    """Return int32[K, W], the numbers of bodies uint8[K, B]."""
    rows = len(bodies)
    if bits == 0:
        return np.zeros((rows, lanes), dtype=np.int32)
    words = np.ascontiguousarray(bodies).view(">u4").astype(np.uint32)
    if bits == _WORD_BITS:
        whole: Int32s = words.view(np.int32)
        return whole
    groups, shifts = words.shape[1] // _GROUP, _shifts(bits)
    biased = words.reshape(rows, groups, 1, _GROUP) >> shifts & np.uint32((1 << bits) - 1)
    numbers = biased.astype(np.int32).reshape(rows, groups * len(shifts) * _GROUP)
    unbiased: Int32s = numbers[:, :lanes] - np.int32(1 << (bits - 1))
    return unbiased


def _shifts(bits: int) -> UInt32s:
    return np.arange(_WORD_BITS - bits, -1, -bits, dtype=np.uint32)[:, np.newaxis]
