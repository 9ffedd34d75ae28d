"""Exchanges of changed rows and of rows in fewer bits, after CDFGNN's Algorithm 2.

Each sender keeps what every receiver holds of each of its rows, and each receiver keeps the same
table. Both add the same float32 numbers to it in the same order, so the two ends are bit-identical,
and what rounding takes away from a change is part of the next one. Sums are made of whole tables.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int64s
from switchgnn.host.base.compression import (
    WHOLE_BITS,
    Compression,
    LeastChange,
    Savings,
    SkipMasks,
    all_skipped,
    largest_of_rows,
)
from switchgnn.host.direct.quantiser import Quantiser, flag_rows, pack_flags, unpack_flags
from switchgnn.host.direct.stream import Side
from switchgnn.planner.base.arrays import indptr_of
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


class CompressedRows:
    """The compressed exchanges of one worker; all workers make the same calls in the same order."""

    def __init__(
        self,
        compression: Compression,
        worker: int,
        sides: Mapping[Direction, Side],
        savings: Savings,
    ) -> None:
        self._compression = compression
        self._sides = sides
        self._savings = savings
        self._tables: dict[_TensorKey, _HeldRows] = {}
        self._residuals: dict[_TensorKey, Float32s] = {}
        self.skipped = SkipMasks()
        self._quantiser: Quantiser | None = None
        if compression.bits < WHOLE_BITS:
            generator = np.random.default_rng([compression.seed, worker])
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
        side, key = self._sides[direction], _TensorKey(tensor_id, direction, rows.shape[1])
        outgoing = side.send.apply(rows)
        self._savings.rows += len(outgoing)
        if self._compression.cache:
            least = LeastChange.of(epsilon, largest_of_rows(rows))
            incoming = self._changed_rows(outgoing, key, least, swap)
        else:
            incoming = self._rounded_rows(outgoing, key, swap)
        return side.add.apply(incoming)

    def _rounded_rows(self, outgoing: Float32s, key: _TensorKey, swap: Swap) -> Float32s:
        if key in self._residuals:
            outgoing = outgoing + self._residuals[key]
        side, words = self._sides[key.direction], self._pack(outgoing)
        if self._compression.feedback:
            self._residuals[key] = outgoing - self._unpack(words, key.width)
        arrived = swap(
            key.round_name("rows"), words, side.send.sizes, side.out_indptr, side.in_indptr
        )
        return self._unpack(arrived, key.width)

    def _changed_rows(
        self, outgoing: Float32s, key: _TensorKey, least: LeastChange, swap: Swap
    ) -> Float32s:
        side = self._sides[key.direction]
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
            self._savings.full += 1
        sent, held = self._tables[key]
        self._savings.skipped += len(changed) - int(changed.sum())
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
