"""The integers that a worker sends in a round: its rows, or how they have changed (CDFGNN, 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Float64s, Int32s
from switchgnn.host.base import compression as compress
from switchgnn.host.innetwork.fixed_point import ROOM, ExchangeKind, FixedPoint, OwnWords
from switchgnn.host.innetwork.responder import Fragments
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire.header import Header, combine_of, in_pool, lanes_of

# A cached scale is renewed when the largest feature is so far below its magnitude that too few of
# its steps are left, by the bits of a number; see also `ROOM`.
_LEAST_SHARE = {32: 2.0**-12, 16: 1 / 16, 8: 1 / 4}
# `send_destination` of a frame that is no partial sum.
_ALONE = -1


@dataclass(frozen=True, eq=False)
class WholeRows:
    """Rows as they are; `lanes`: int32[n, W] by the word of the fragment."""

    lanes: Fragments

    def payloads(self, schedule: BlockSchedule, fragment: int) -> Int32s:
        """Return int32[S, K · W], a fragment of the rows of each frame, or of sums of several."""
        lanes = self.lanes[in_pool(fragment, 0)]
        return schedule.frames_of(schedule.payloads(lanes, combine_of(fragment)))

    def contribution(self, request: Header, row: int) -> Int32s:
        """Return int32[W], what a local row adds to a requested sum."""
        lanes: Int32s = self.lanes[in_pool(request.fragment, 0)][row]
        return lanes


@dataclass(frozen=True, eq=False)
class ChangedRows:
    """Changes of what frames carry; 0 where too little has changed, in `skipped` rows.

    By the number of a block, `lanes`: int32[S · K, W] by the word of the fragment; `cached`:
    int32[S · K, F], what the receivers hold after the round. `schedules`: of all blocks, from 1.
    """

    lanes: Mapping[int, Fragments]
    cached: Mapping[int, Int32s]
    schedules: Sequence[BlockSchedule]
    skipped: int

    def payloads(self, schedule: BlockSchedule, fragment: int) -> Int32s:
        """Return int32[S, K · W], a fragment of the changes of each frame's rows or sums."""
        return schedule.frames_of(self.lanes[schedule.block_id][in_pool(fragment, 0)])

    def contribution(self, request: Header, row: int) -> Int32s | None:
        """Return the change of a row, or of the partial sum that it is in.

        Of a partial sum's rows the first stands for all, and the others add nothing. None: no row.
        """
        lanes = self.lanes[request.block_id][in_pool(request.fragment, 0)]
        schedule = self.schedules[request.block_id - 1]
        frame = _frame_of(schedule, request.dst_id, row)
        if frame is None:
            return None
        first = int(schedule.send_row[schedule.send_row_indptr[frame]])
        change: Int32s = lanes[frame] if row == first else np.zeros_like(lanes[frame])
        return change


def _frame_of(schedule: BlockSchedule, destination: int, row: int) -> int | None:
    at = np.flatnonzero(schedule.send_row == row)
    frames = np.searchsorted(schedule.send_row_indptr, at, side="right") - 1
    to = schedule.send_destination[frames]
    # In a partial sum for this destination; otherwise alone, for all that are left.
    for wanted in (destination, _ALONE):
        if wanted in to:
            return int(frames[to == wanted][0])
    return None


@dataclass(eq=False)
class RowCache:
    """What the receivers hold of one tensor, and the sums that this worker holds.

    All integers have the scale `fixed_point`; None: the next round sends all rows whole. `sent`: by
    the number of a block, int32[S, F], what was sent of each frame's row. `sums`: int32[n, F].
    """

    fixed_point: FixedPoint | None = None
    sent: dict[int, Int32s] = field(default_factory=dict)
    sums: Int32s | None = None

    def fits(self, largest: float) -> bool:
        """Return whether features of up to `largest` may go at the scale of this cache."""
        if self.fixed_point is None:
            return False
        magnitude = self.fixed_point.magnitude
        least = magnitude * _LEAST_SHARE[self.fixed_point.bits]
        return least <= largest <= min(ROOM * magnitude, self.fixed_point.limit)

    def begin_again(self) -> None:
        """Forget all rows: the next round sends them whole."""
        self.fixed_point, self.sums = None, None
        self.sent.clear()

    def keep(
        self, changes: Int32s, rows: ChangedRows, scale: FixedPoint, savings: compress.Savings
    ) -> Int32s:
        """Take over a completed round, and return the sums; `changes`: int32[n, F], of the sums.

        Additions wrap, but the sums themselves cannot, as none of their rows is above the scale.
        """
        savings.rows += sum(map(len, rows.cached.values()))
        savings.skipped += rows.skipped
        savings.full += self.sums is None
        self.fixed_point = scale
        self.sent = dict(rows.cached)
        self.sums = changes if self.sums is None else self.sums + changes
        return self.sums


Tensor = tuple[int, ExchangeKind]


def forget(tensors: dict[Tensor, Any], tensor_id: int) -> None:
    """Forget what is known of a tensor."""
    for key in [key for key in tensors if key[0] == tensor_id]:
        del tensors[key]


def changed_rows(
    values: Int32s,
    cache: RowCache,
    schedules: Sequence[BlockSchedule],
    blocks: Sequence[int],
    words: Sequence[int],
    *,
    epsilon: float,
    to_skip: Bools | None = None,
) -> ChangedRows:
    """Compare what each frame would carry with what was sent of it; see ``compress.LeastChange``.

    `values`: int32[n, F], the rows of this worker at the cache's scale. `schedules`: of all blocks,
    from block 1. `words`: of the fragments. `to_skip`: bool[n], vertices whose rows count as
    unchanged, unless all rows are sent whole.
    """
    lanes, cached, skipped = {}, {}, 0
    whole = cache.sums is None
    least = compress.LeastChange.of(
        0.0 if whole else epsilon, compress.largest_of_rows(values.astype(np.int64))
    )
    for block in blocks:
        schedule = schedules[block - 1]
        rows = schedule.payloads(values)
        sent = cache.sent.get(block)
        if sent is None:
            sent = np.zeros_like(rows)
        wide = rows.astype(np.int64)
        change = wide - sent
        moved = least.reached(compress.largest_of_rows(change), compress.largest_of_rows(wide))
        if to_skip is not None and not whole:
            moved &= ~compress.all_skipped(to_skip, schedule.send_row, schedule.send_row_indptr)
        filled = np.diff(schedule.send_row_indptr) > 0
        skipped += int((filled & ~moved).sum())
        change[~moved] = 0
        cached[block] = np.where(moved[:, np.newaxis], rows, sent)
        lanes[block] = cut_into_fragments(change.astype(np.int32), words, schedule.rows)
    return ChangedRows(lanes, cached, schedules, skipped)


class Rounding:
    """Rounds rows to integers, as a compression says, with errors of up to `step_error` steps."""

    def __init__(self, compression: compress.Compression, worker: int) -> None:
        self._stochastic = compression.stochastic
        # With a cache, what is missing stays in the difference to what was sent.
        narrow = compression.bits < compress.WHOLE_BITS
        self._feedback = compression.feedback and narrow and not compression.cache
        self._generator = np.random.default_rng((compression.seed, worker))
        self._rests: dict[Tensor, Float64s] = {}
        self._next: dict[Tensor, Float64s] = {}
        self.step_error = 1.0 if self._stochastic or self._feedback else 0.5

    def encode(self, features: Float32s, scale: FixedPoint, tensor: Tensor) -> Int32s:
        """Return int32[n, F], the rows float32[n, F] at a scale."""
        if isinstance(scale, OwnWords) or not (self._stochastic or self._feedback):
            return scale.encode(features)
        exact = features.astype(np.float64)
        if self._feedback and tensor in self._rests:
            exact += self._rests[tensor]
        steps = exact * scale.scale
        if self._stochastic:
            values = np.floor(steps + self._generator.random(steps.shape))
        else:
            values = np.rint(steps)
        if self._feedback:
            self._next[tensor] = (steps - values) / scale.scale
        return values.astype(np.int32)

    def sent(self) -> None:
        """Remember what the last rows lack, now that they have been exchanged."""
        self._rests.update(self._next)
        self._next.clear()

    def forget(self, tensor_id: int) -> None:
        """Forget what the rows of a tensor lack."""
        forget(self._rests, tensor_id)


def cut_into_fragments(values: Int32s, words: Sequence[int], rows: int = 1) -> Fragments:
    """Return the slices of the rows by the word of the fragment; the last is padded with zeros.

    A frame has that many rows.
    """
    ends = np.cumsum([lanes_of(word) // rows for word in words])
    padded = np.zeros((len(values), ends[-1]), dtype=np.int32)
    padded[:, : values.shape[1]] = values
    return dict(zip(words, np.split(padded, ends[:-1], axis=1), strict=True))
