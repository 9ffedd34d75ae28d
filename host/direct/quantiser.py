"""Rows in 16 or 8 bits per number, and flags in one bit, as float32 words of the exchange.

The quantiser is the one of CDFGNN (section 5) with two corrections: B bits have 2^B - 1 steps, so
that the largest number has a code, and a row of equal numbers is exact.
"""

from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int64s, UInt8s
from switchgnn.host.base.errors import FeatureError
from switchgnn.planner.base.arrays import indptr_of, ranges

_CODES: dict[int, np.dtype[np.unsignedinteger[Any]]] = {8: np.dtype("u1"), 16: np.dtype(">u2")}
_WORD_BYTES = 4
# The smallest and the largest number of a row precede its codes.
_RANGE_WORDS = 2
# A row of flags.
FLAG_WORDS = 8
_FLAGS = 8 * _WORD_BYTES * FLAG_WORDS


class Quantiser:
    """Packs each row by itself: smallest and largest number as float32, then a code per number.

    A code q stands for min + q·(max - min)/(2^B - 1). Numbers change by at most half a step, or one
    step with stochastic rounding, besides float32 rounding. Both ends unpack to the same float32.
    `bits`: B, 8 or 16. `generator`: rounds up with the probability of the rest; None: to the
    nearest code.
    """

    def __init__(self, bits: int, generator: np.random.Generator | None = None) -> None:
        self._code = _CODES[bits]
        self._steps = np.float32(2**bits - 1)
        self._generator = generator

    def words(self, width: int) -> int:
        """Return how many words a row of ``width`` numbers takes."""
        return _RANGE_WORDS + -(-width * self._code.itemsize // _WORD_BYTES)

    def pack(self, rows: Float32s) -> Float32s:
        """Return float32[K, words(F)] for float32[K, F]; FeatureError: not finite."""
        low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
        step = self._step(low, high)
        if not np.isfinite(step * self._steps).all():
            raise FeatureError(
                "Rows of 8 or 16 bits per number must be finite and within the range of float32, "
                "and so must their changes; at least one is not: use 32 bits, or find out why the "
                "numbers grow."
            )
        code_bytes = (self.words(rows.shape[1]) - _RANGE_WORDS) * _WORD_BYTES
        codes = np.zeros((len(rows), code_bytes), dtype=np.uint8)
        exact = (rows - low) / np.where(step > 0, step, 1)
        codes.view(self._code)[:, : rows.shape[1]] = np.minimum(self._round(exact), self._steps)
        return np.concatenate([low, high, _as_words(codes)], axis=1)

    def unpack(self, words: Float32s, width: int) -> Float32s:
        """Return float32[K, width] for float32[K, words(width)]."""
        low, high = words[:, :1], words[:, 1:_RANGE_WORDS]
        codes = _as_bytes(words[:, _RANGE_WORDS:]).view(self._code)[:, :width]
        numbers = codes.astype(np.float32)
        numbers *= self._step(low, high)
        numbers += low
        return numbers

    def _step(self, low: Float32s, high: Float32s) -> Float32s:
        """Return float32[K, 1], the distance of two codes; 0 for equal numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            step: Float32s = (high - low) / self._steps
        return step

    def _round(self, exact: Float32s) -> Float32s:
        if self._generator is None:
            exact += np.float32(0.5)
        whole: Float32s = np.floor(exact)
        if self._generator is not None:
            whole += self._generator.random(exact.shape, dtype=np.float32) < exact - whole
        return whole


def pack_flags(flags: Bools, indptr: Int64s) -> Float32s:
    """Return float32[K, FLAG_WORDS] of flags.

    `flags`: bool[R]. `indptr`: int64[W + 1], those of each worker; K: see ``flag_rows``.
    """
    rows = flag_rows(indptr)
    padded = np.zeros(int(rows[-1]) * _FLAGS, dtype=np.bool_)
    padded[_flag_indices(indptr, rows)] = flags
    return _as_words(np.packbits(padded.reshape(-1, _FLAGS), axis=1))


def unpack_flags(words: Float32s, indptr: Int64s) -> Bools:
    """Return bool[R]; see ``pack_flags``."""
    flags = np.unpackbits(_as_bytes(words)).astype(np.bool_)
    return flags[_flag_indices(indptr, flag_rows(indptr))]


def flag_rows(indptr: Int64s) -> Int64s:
    """Return int64[W + 1], where each worker's rows of flags begin; one row has 256 flags."""
    return indptr_of(-(-np.diff(indptr) // _FLAGS))


def _flag_indices(indptr: Int64s, rows: Int64s) -> Int64s:
    return ranges(rows[:-1] * _FLAGS, np.diff(indptr))


# The exchange moves float32 bit by bit, big-endian, so bytes keep their order on the wire.
def _as_words(packed: UInt8s) -> Float32s:
    return packed.view(">f4").astype(np.float32)


def _as_bytes(words: Float32s) -> UInt8s:
    return words.astype(">f4").view(np.uint8)
