"""Exchanges of changed rows and of rows in fewer bits, after CDFGNN's Algorithm 2.

Each sender keeps what every receiver holds of each of its rows, and each receiver keeps the same
table. Both add the same float32 numbers to it in the same order, so the two ends are bit-identical,
and what rounding takes away from a change is part of the next one. Sums are made of whole tables.

Numbers take 32, 16 or 8 bits, and flags one, as float32 words of the exchange. The quantiser is the
one of CDFGNN (section 5) with two corrections: B bits have 2^B - 1 steps, so that the largest
number has a code, and a row of equal numbers is exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int64s, UInt8s
from switchgnn.host.base.compression import (
    WHOLE_BITS,
    Compression,
    LeastChange,
    Savings,
    SkipMasks,
    all_skipped,
    largest_of_rows,
)
from switchgnn.host.base.errors import FeatureError
from switchgnn.host.direct.stream import Side
from switchgnn.planner.base.arrays import indptr_of, ranges
from switchgnn.planner.base.direction import Direction


class Swap(Protocol):
    """Exchanges one round of rows."""

    def __call__(
        self, name: str, rows: Float32s, counts: Int64s, out_indptr: Int64s, in_indptr: Int64s
    ) -> Float32s:
        """Send float32[S, F] rows and return float32[R, F], those of the others, bit by bit.

        `name`: the same for all workers. `counts`: int64[S], how many rows of vertices each row
        adds up. `out_indptr`, `in_indptr`: int64[W + 1], the rows for and of each worker.
        """


class _TensorKey(NamedTuple):
    number: int
    direction: Direction
    width: int

    def round_name(self, part: str) -> str:
        return f"{self.direction.value}/{self.number}/{self.width}/{part}"


class _HeldRows(NamedTuple):
    """`sent`: float32[S, F], what receivers hold of the outgoing rows; `held`: float32[R, F]."""

    sent: Float32s
    held: Float32s


@dataclass(eq=False)
class CompressedRows:
    """The compressed exchanges of one worker; all workers make the same calls in the same order."""

    compression: Compression
    worker: int
    sides: Mapping[Direction, Side]
    savings: Savings

    def __post_init__(self) -> None:
        compression = self.compression
        self._tables: dict[_TensorKey, _HeldRows] = {}
        self._residuals: dict[_TensorKey, Float32s] = {}
        self.skipped = SkipMasks()
        self._quantiser: Quantiser | None = None
        if compression.bits < WHOLE_BITS:
            generator = np.random.default_rng([compression.seed, self.worker])
            self._quantiser = Quantiser(
                compression.bits, generator if compression.stochastic else None
            )

    def forget(self, tensor_id: int) -> None:
        """Drop all that is kept of a tensor."""
        self.skipped.skip(tensor_id, None)
        for kept in (self._tables, self._residuals):
            for key in [key for key in kept if key.number == tensor_id]:
                del kept[key]

    def aggregate(
        self, rows: Float32s, direction: Direction, tensor_id: int, *, epsilon: float, swap: Swap
    ) -> Float32s:
        """Return float32[n, F], the sums over the rows that this worker now holds of the others.

        `rows`, `direction`, `tensor_id`: see ``Transport.aggregate``. `epsilon`: how much a row
        changes before it is sent, as a share (``LeastChange``); only with a cache.
        """
        side, key = self.sides[direction], _TensorKey(tensor_id, direction, rows.shape[1])
        outgoing = side.send.apply(rows)
        self.savings.rows += len(outgoing)
        if self.compression.cache:
            least = LeastChange.of(epsilon, largest_of_rows(rows))
            incoming = self._changed_rows(outgoing, key, least, swap)
        else:
            incoming = self._rounded_rows(outgoing, key, swap)
        return side.add.apply(incoming)

    def _rounded_rows(self, outgoing: Float32s, key: _TensorKey, swap: Swap) -> Float32s:
        if key in self._residuals:
            outgoing = outgoing + self._residuals[key]
        side, words = self.sides[key.direction], self._pack(outgoing)
        if self.compression.feedback:
            self._residuals[key] = outgoing - self._unpack(words, key.width)
        arrived = swap(
            key.round_name("rows"), words, side.send.sizes, side.out_indptr, side.in_indptr
        )
        return self._unpack(arrived, key.width)

    def _changed_rows(
        self, outgoing: Float32s, key: _TensorKey, least: LeastChange, swap: Swap
    ) -> Float32s:
        side = self.sides[key.direction]
        if key in self._tables:
            with np.errstate(over="ignore", invalid="ignore"):
                changes = largest_of_rows(outgoing - self._tables[key].sent)
            changed = least.reached(changes, largest_of_rows(outgoing))
            skipped = self.skipped.of(key.number, key.direction)
            if skipped is not None:
                changed &= ~all_skipped(skipped, side.send.column, side.send.indptr)
            awaited = self._swap_flags(changed, side, key, swap)
        else:
            # Nothing is held yet: all rows come, and no flags.
            held = np.zeros((side.add.width, key.width), dtype=np.float32)
            self._tables[key] = _HeldRows(np.zeros_like(outgoing), held)
            changed, awaited = (np.ones(len(each), np.bool_) for each in self._tables[key])
            self.savings.full += 1
        sent, held = self._tables[key]
        self.savings.skipped += len(changed) - int(changed.sum())
        news = outgoing[changed]
        words = self._pack(news if self._quantiser is None else news - sent[changed])
        self._update(sent, changed, words)
        arrived = swap(
            key.round_name("changes"),
            words,
            side.send.sizes[changed],
            indptr_of(changed.view(np.int8))[side.out_indptr],
            indptr_of(awaited.view(np.int8))[side.in_indptr],
        )
        self._update(held, awaited, arrived)
        return held

    def _swap_flags(self, changed: Bools, side: Side, key: _TensorKey, swap: Swap) -> Bools:
        words = pack_flags(changed, side.out_indptr)
        arrived = swap(
            key.round_name("flags"),
            words,
            np.ones(len(words), dtype=np.int64),
            flag_rows(side.out_indptr),
            flag_rows(side.in_indptr),
        )
        return unpack_flags(arrived, side.in_indptr)

    def _update(self, table: Float32s, indices: Bools, words: Float32s) -> None:
        if self._quantiser is None:
            table[indices] = words
        else:
            table[indices] += self._unpack(words, table.shape[1])

    def _pack(self, rows: Float32s) -> Float32s:
        return rows if self._quantiser is None else self._quantiser.pack(rows)

    def _unpack(self, words: Float32s, width: int) -> Float32s:
        return words if self._quantiser is None else self._quantiser.unpack(words, width)


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
