"""The frames of the fragments that a worker has sent last, and the sums that have come for them.

Both are rings: the fragment of a number is in the slot of the number modulo their size.
"""

from collections.abc import Iterator
from ctypes import addressof
from typing import NamedTuple

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s, UInt8s
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.batches import FrameBatch, FrameRows
from switchgnn.host.wire.link import Link
from switchgnn.host.wire.native import Arrived, native_frames, shared_struct, write_checksums
from switchgnn.planner.base.lanes import LANES as WIDTHS

LANES = WIDTHS[-1]
_LANE = np.dtype(">i4")
BODY_BYTES = LANES * _LANE.itemsize
# The lower bits of a fragment's number are in Block_id, the others in Round.
_BLOCK_BITS = 16
_BLOCK_MASK = (1 << _BLOCK_BITS) - 1
LAST_NUMBER = (1 << _BLOCK_BITS + 24) - 1
_RESEND = 0x10


def number_of(header: wire.Header) -> int:
    """Return the number of the fragment that a packet is about."""
    return header.round << _BLOCK_BITS | header.block_id


def with_number(header: wire.Header, number: int) -> wire.Header:
    """Return the header with the number of a fragment."""
    return header._replace(round=number >> _BLOCK_BITS, block_id=number & _BLOCK_MASK)


def spans(first: int, count: int, slots: int) -> Iterator[tuple[int, int]]:
    """Yield the slots of consecutive fragments, as up to two pairs of first slot and count."""
    while count > 0:
        slot = first & slots - 1
        here = min(count, slots - slot)
        yield slot, here
        first, count = first + here, count - here


class FragmentFrames:
    """The REDUCE frames of one worker, in a ring of `slots`, a power of two.

    `widths`, `codes`: uint8[slots], the code of each frame's width, and its exponent code.
    `lanes`: of a whole fragment.
    """

    def __init__(
        self, addresses: Addresses, worker: int, session: int, slots: int, lanes: int = LANES
    ) -> None:
        self._slots, self._widest = slots, WIDTHS.index(lanes)
        self._bytes = np.zeros((slots, wire.feature_frame_bytes(lanes)), dtype=np.uint8)
        self._lanes = self._bytes[:, wire.BODY_AT :].view(_LANE)
        self._rows = FrameRows(self._bytes)
        self.widths = np.zeros(slots, dtype=np.uint8)
        self.codes = np.zeros(slots, dtype=np.uint8)
        header = wire.Header(kind=wire.Kind.REDUCE, src_id=worker, count=1, session=session)
        packets = [
            header._replace(fragment=code).pack(bytes(_LANE.itemsize * lanes))
            for code, lanes in enumerate(WIDTHS)
        ]
        frame = addresses.frame
        # By whether they are late, and by width.
        self._heads = [
            [np.frombuffer(frame(each, late=late), np.uint8)[: wire.BODY_AT] for each in packets]
            for late in (False, True)
        ]

    def write(self, number: int, rows: Int32s, codes: UInt8s, *, late: bool = False) -> None:
        """Write lanes, int32[F, k], as consecutive fragments, as narrow as possible.

        `codes`: uint8[F]. `late`: whether frames of other classes go first.
        """
        lanes = rows.shape[1]
        width = next(width for width, most in enumerate(WIDTHS) if most >= lanes)
        begin = 0
        for slot, count in spans(number, len(rows), self._slots):
            at, part = slice(slot, slot + count), slice(begin, begin + count)
            self._lanes[at, :lanes] = rows[part]
            self._lanes[at, lanes:] = 0
            self._bytes[at, : wire.BODY_AT] = self._heads[late][width]
            self._complete(number + begin, at, width, codes[part])
            begin += count

    def _complete(self, number: int, slots: slice, width: int, codes: UInt8s) -> None:
        numbers = np.arange(number, number + len(codes))
        wire.write_fields(
            self._bytes[slots, wire.HEADER_AT : wire.BODY_AT],
            block_id=numbers & _BLOCK_MASK,
            round=numbers >> _BLOCK_BITS,
            feature_group=codes,
        )
        self.widths[slots] = width
        self.codes[slots] = codes
        sizes = None
        if width < self._widest:
            sizes = np.full(len(codes), wire.feature_frame_bytes(WIDTHS[width]), dtype=np.uint32)
        write_checksums(self._bytes[slots], sizes)

    def send(self, link: Link, number: int, count: int) -> None:
        """Send consecutive fragments; the first one of each tensor is narrow."""
        for slot, here in spans(number, count, self._slots):
            narrow = np.flatnonzero(self.widths[slot : slot + here] < self._widest)
            begin = slot
            for index in narrow.tolist():
                self._send_rows(link, begin, slot + index)
                link.send(self._frame(slot + index))
                begin = slot + index + 1
            self._send_rows(link, begin, slot + here)

    def _send_rows(self, link: Link, begin: int, end: int) -> None:
        if end > begin:
            link.send_rows(self._rows, begin, end - begin)

    def _frame(self, slot: int) -> memoryview:
        size = wire.feature_frame_bytes(wire.lanes_of(int(self.widths[slot])))
        return self._rows.frame(slot)[:size]

    def question(self, number: int) -> memoryview:
        """Return the frame of a fragment that asks all workers for its sum."""
        asking = np.array(self._frame(number & self._slots - 1))
        asking[wire.KIND_AT] |= _RESEND
        write_checksums(asking[np.newaxis])
        return asking.data


class ReducedBatch(NamedTuple):
    """What the frames of a batch brought: int64[k] fragments whose sums were stored.

    `marked` of them came with the ECN mark; `ignored` frames are of another kind, and those `left`
    need further processing.
    """

    numbers: Int64s
    marked: int
    ignored: int
    left: list[int]


class SumRing:
    """The sums of the last fragments that this worker has sent; `first`: the first it will send.

    `awaited`: bool[slots], the fragments whose sums have not come. `codes`: uint8[slots], the
    largest exponent codes of all workers. `lanes`: int32[slots, 256], the sums, big-endian.
    """

    def __init__(self, sent: FragmentFrames, workers: int, session: int, first: int) -> None:
        slots = len(sent.widths)
        self._slots, self._workers, self._session = slots, workers, session
        self._begin = self._end = first
        self._sent = sent
        self.awaited = np.zeros(slots, dtype=np.bool_)
        self.codes = np.zeros(slots, dtype=np.uint8)
        self.lanes = np.zeros((slots, LANES), dtype=_LANE)
        self._bodies = self.lanes.view(np.uint8).reshape(-1).data
        self._native = native_frames()
        self._fast_path = shared_struct("ReducedFields")(
            session=session,
            workers=workers,
            mask=slots - 1,
            awaited=self.awaited.ctypes.data,
            widths=sent.widths.ctypes.data,
            sent_codes=sent.codes.ctypes.data,
            codes=self.codes.ctypes.data,
            bodies=self.lanes.ctypes.data,
        )
        self._batch: FrameBatch | None = None

    def await_sums(self, number: int, count: int) -> None:
        """Await the sums of consecutive fragments, the last ones that were sent."""
        for slot, here in spans(number, count, self._slots):
            self.awaited[slot : slot + here] = True
        self._end = number + count
        self._begin = max(self._begin, self._end - self._slots)

    def first_awaited(self, begin: int) -> int:
        """Return the first fragment from ``begin`` on that is awaited, or the end of all."""
        for slot, here in spans(begin, self._end - begin, self._slots):
            part = self.awaited[slot : slot + here]
            index = int(part.argmax())
            if part[index]:
                return begin + index
            begin += here
        return self._end

    def take_plain(self, batch: FrameBatch) -> ReducedBatch:
        """Store the awaited sums of a batch; without native code all frames are left."""
        if self._native is None:
            nothing = np.zeros(0, dtype=np.int64)
            return ReducedBatch(nothing, 0, 0, list(range(batch.first, batch.count)))
        if batch is not self._batch:
            self._get_ready(batch)
        fast_path = self._fast_path
        fast_path.begin, fast_path.end = self._begin, self._end
        self._native.take_reduced(addressof(fast_path), self._arrived, batch.first, batch.count)
        left = self._left[: fast_path.left].tolist() if fast_path.left else []
        return ReducedBatch(
            self._taken[: fast_path.taken], fast_path.marked, fast_path.ignored, left
        )

    def _get_ready(self, batch: FrameBatch) -> None:
        """Make room for the results of a batch; links reuse the same one."""
        self._batch = batch
        self._where = Arrived.of(batch)
        self._arrived = addressof(self._where)
        self._taken = np.zeros(len(batch.sizes), dtype=np.int64)
        self._left = np.zeros(len(batch.sizes), dtype=np.uint32)
        self._fast_path.numbers = self._taken.ctypes.data
        self._fast_path.left_frames = self._left.ctypes.data

    def awaits(self, number: int) -> bool:
        """Return whether the sum of a fragment is awaited."""
        known = self._begin <= number < self._end
        return known and bool(self.awaited[number & self._slots - 1])

    def take(self, header: wire.Header, frame: memoryview) -> bool:
        """Store the sum of an awaited fragment; return whether it is sound."""
        slot = number_of(header) & self._slots - 1
        if header.count != self._workers or header.fragment != self._sent.widths[slot]:
            return False
        if not self._sent.codes[slot] <= header.feature_group <= _MOST_CODE:
            return False
        body = frame[wire.BODY_AT : wire.feature_frame_bytes(wire.lanes_of(header.fragment))]
        self._bodies[slot * BODY_BYTES : slot * BODY_BYTES + len(body)] = body
        self.codes[slot] = header.feature_group
        self.awaited[slot] = False
        return True

    def held(self, number: int) -> tuple[wire.Header, bytes] | None:
        """Return a REDUCED with the sum of a fragment for other workers, if it is here."""
        if not self._begin <= number < self._end or self.awaits(number):
            return None
        slot = number & self._slots - 1
        width = int(self._sent.widths[slot])
        header = wire.Header(
            kind=wire.Kind.REDUCED,
            count=self._workers,
            resend=True,
            fragment=width,
            feature_group=int(self.codes[slot]),
            session=self._session,
        )
        return with_number(header, number), self.lanes[slot, : WIDTHS[width]].tobytes()


_MOST_CODE = 255
