# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers in fewer bits on the wire: those that fit in 16 or 8 bits, and rows of zeros.

Nothing is lost: a frame gets the fewest bits that hold all its numbers. With b bits, x is sent as
the unsigned number x + 2^(b-1). The lanes of a bank (32, or all of a narrower frame) are cut into
32 / b parts, and each word holds the lanes with the same index in all parts, the first part in its
upper bits. The switch widens them with masks, and needs no sign extension.
"""

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.header import LANES, allowed_bits

_WORD_BITS = 32


def bits_needed(values: NDArray[np.int32]) -> NDArray[np.uint8]:
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


def pack_lanes(values: NDArray[np.int32], bits: int) -> NDArray[np.uint8]:
    """Return uint8[K, W bits / 8], the bodies of rows int32[K, W] that fit in these bits."""
    rows, lanes = values.shape
    if bits == 0:
        return np.zeros((rows, 0), dtype=np.uint8)
    if bits == _WORD_BITS:
        words = np.ascontiguousarray(values, dtype=">i4")
        return words.view(np.uint8).reshape(rows, 4 * lanes)
    biased = (values + np.int32(1 << (bits - 1))).astype(np.uint32)
    parts = biased.reshape(rows, *_parts(lanes, bits))
    packed = np.zeros((rows, parts.shape[1], parts.shape[3]), dtype=np.uint32)
    for part in range(parts.shape[2]):
        packed |= parts[:, :, part] << np.uint32(_WORD_BITS - bits * (part + 1))
    return packed.astype(">u4").view(np.uint8).reshape(rows, lanes * bits // 8)


def unpack_lanes(bodies: NDArray[np.uint8], lanes: int, bits: int) -> NDArray[np.int32]:
    """Return int32[K, W], the numbers of bodies uint8[K, W bits / 8]."""
    rows = len(bodies)
    if bits == 0:
        return np.zeros((rows, lanes), dtype=np.int32)
    words = np.ascontiguousarray(bodies).view(">u4").astype(np.uint32)
    if bits == _WORD_BITS:
        whole: NDArray[np.int32] = words.view(np.int32)
        return whole
    banks, parts, words_of_bank = _parts(lanes, bits)
    packed = words.reshape(rows, banks, 1, words_of_bank)
    shifts = _WORD_BITS - bits * np.arange(1, parts + 1, dtype=np.uint32)
    biased = packed >> shifts[:, np.newaxis] & np.uint32((1 << bits) - 1)
    numbers: NDArray[np.int32] = biased.astype(np.int32).reshape(rows, lanes)
    numbers -= np.int32(1 << (bits - 1))
    return numbers


def _parts(lanes: int, bits: int) -> tuple[int, int, int]:
    """Return the banks of a row, the parts of each, and the lanes of a part."""
    of_bank, parts = min(lanes, LANES), _WORD_BITS // bits
    return lanes // of_bank, parts, of_bank // parts
