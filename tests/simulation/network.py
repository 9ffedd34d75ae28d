"""Simulated lines: wires with faults, frames' headers, and the links of workers."""

import math
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from switchgnn.host.base.errors import LinkError
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.batches import FrameBatch, FrameRows, new_batch
from switchgnn.host.wire.link import Link, Traffic
from tests.simulation.scenario import Fault, FaultKind, IncidentRates, ScenarioError
from tests.simulation.timing import SECOND, Scheduler, Task, Trace

Deliver = Callable[[list[bytes]], None]
_PASSED = "passed"
_SILENT = "silence"


@dataclass(frozen=True)
class LineState:
    """The state that all lines of a run share."""

    scheduler: Scheduler
    random: Random
    # latency, jitter: nanoseconds of a line, and the most that is added at random
    latency: int
    jitter: int
    fates: Counter[str] = field(default_factory=Counter)  # frames by what became of them
    faults: list[Fault] = field(default_factory=list)  # those of single frames

    @property
    def trace(self) -> Trace:
        return self.scheduler.trace


class WireFaults:
    """Chooses the frames of a line that have a fault; `next` frames pass before the next one."""

    next: int
    _frames = 0

    def passed(self, frames: int) -> None:
        """Note frames without faults, fewer than ``next``."""
        self._frames += frames
        self.next -= frames

    def fault(self, frame: bytes) -> Fault:
        """Return the fault of the next frame, and go on after it."""
        raise NotImplementedError


class Wire:
    """Delivers frames in order, but for faults."""

    def __init__(self, name: str, state: LineState, faults: WireFaults, deliver: Deliver) -> None:
        self.name = name
        self._state = state
        self._faults = faults
        self._deliver = deliver
        self._last = 0
        self._silent_until = 0
        self._forgotten = 0

    def silence(self, seconds: float) -> None:
        until = self._state.scheduler.now + int(seconds * SECOND)
        self._silent_until = max(self._silent_until, until)

    def forget_late(self) -> None:
        self._forgotten += 1

    def send(self, frames: list[bytes]) -> None:
        state, trace = self._state, self._state.trace
        now = state.scheduler.now
        if now < self._silent_until:
            state.fates[_SILENT] += len(frames)
            for frame in frames:
                trace.frame(self.name, _SILENT, 0, frame)
            return
        arrives = now + state.latency + int(state.jitter * state.random.random())
        # Frames do not overtake each other unless that is their fate.
        self._last = arrives = max(arrives, self._last)
        if self._faults.next < len(frames):
            frames = self._disturbed(frames, arrives)
        else:
            self._faults.passed(len(frames))
            self._pass(frames, arrives)
        if frames:
            state.scheduler.at(arrives, self._deliver, frames)

    def _pass(self, frames: list[bytes], arrives: int) -> list[bytes]:
        self._state.fates[_PASSED] += len(frames)
        for frame in frames:
            self._state.trace.frame(self.name, _PASSED, arrives, frame)
        return frames

    def _disturbed(self, frames: list[bytes], arrives: int) -> list[bytes]:
        in_order: list[bytes] = []
        index = 0
        while (until := index + self._faults.next) < len(frames):
            in_order += self._pass(frames[index:until], arrives)
            in_order += self._disturb(frames[until], arrives)
            index = until + 1
        self._faults.passed(len(frames) - index)
        return in_order + self._pass(frames[index:], arrives)

    def _disturb(self, frame: bytes, arrives: int) -> list[bytes]:
        state, fault = self._state, self._faults.fault(frame)
        kind = fault.kind
        state.fates[kind.value] += 1
        state.faults.append(fault)
        in_order = []
        if kind in (FaultKind.DUPLICATE, FaultKind.LATE):
            in_order += self._pass([frame], arrives)
        if kind is FaultKind.LOSS:
            state.trace.frame(self.name, kind.value, 0, frame)
        elif kind is FaultKind.DUPLICATE:
            state.trace.frame(self.name, kind.value, arrives, frame)
            in_order.append(frame)
        elif kind is FaultKind.CORRUPT:
            bits = ",".join(map(str, fault.bits))
            state.trace.frame(self.name, f"{kind.value}:{bits}", arrives, frame)
            in_order.append(_changed(frame, fault.bits))
        else:
            later = arrives + fault.delay
            state.trace.frame(self.name, kind.value, later, frame)
            state.scheduler.at(later, self._arrive_late, self._forgotten, frame)
        return in_order

    def _arrive_late(self, forgotten: int, frame: bytes) -> None:
        # Unless it has been forgotten since.
        if forgotten == self._forgotten:
            self._deliver([frame])


def _changed(frame: bytes, bits: tuple[int, ...]) -> bytes:
    changed = bytearray(frame)
    for bit in bits:
        if bit < 8 * len(changed):
            changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


ETHERTYPE_AT = 12
VERSION_IHL_AT = 14
LENGTH_AT = 16
OFFSET_AT = 20
PROTOCOL_AT = 23
EXTENSION_AT = wire.HEADER_AT + 13
FRAGMENT_AT = wire.HEADER_AT + 14
ROUND_AT = wire.HEADER_AT + 18
CHECKSUM_AT = wire.HEADER_AT + wire.CHECKED_BYTES

# Offset and bytes of every header field.
FIELDS = {
    "src_id": (wire.HEADER_AT, 4),
    "dst_id": (wire.HEADER_AT + 4, 4),
    "block_id": (wire.HEADER_AT + 8, 2),
    "count": (wire.HEADER_AT + 10, 2),
    "flags_kind": (wire.KIND_AT, 1),
    "version_bits_level_echo": (EXTENSION_AT, 1),
    "fragment": (FRAGMENT_AT, 2),
    "group": (wire.HEADER_AT + 16, 2),
    "round": (ROUND_AT, 4),
}


def body_end(frame: bytes | bytearray) -> int:
    header = wire.parse_header(frame).header
    size = wire.body_bytes(header)
    if size is None and header.kind in wire.LANE_KINDS:  # with bits that its numbers cannot have
        size = wire.payload_bytes(header.fragment, header.bits)
    return wire.BODY_AT + (size or 0)


def units_of(blocks: range, words: Iterable[int], pools: int) -> list[tuple[int, int]]:
    """Return the block and the word of each unit of a round, in order; no pool has none."""
    units = [(block, word) for word in words for block in blocks]
    units += [(blocks.stop, 0)] * (pools - len(units))
    return [(block, wire.in_pool(word, k % pools)) for k, (block, word) in enumerate(units)]


def write_header(frame: bytearray, **values: int) -> None:
    for name, value in values.items():
        at, size = FIELDS[name]
        frame[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "big")


def read_field(frame: bytes | bytearray, name: str) -> int:
    at, size = FIELDS[name]
    return int.from_bytes(frame[at : at + size], "big")


def seal(frame: bytearray) -> None:
    """Make the CRC right, if the frame is long enough to have one."""
    if len(frame) < wire.BODY_AT:
        return
    end = body_end(frame)
    checked = zlib.crc32(frame[wire.HEADER_AT : CHECKSUM_AT])
    frame[CHECKSUM_AT : wire.BODY_AT] = zlib.crc32(frame[wire.BODY_AT : end], checked).to_bytes(
        4, "big"
    )


_AT_ONCE = 64
_LONGEST_FRAME = 2048


class VirtualLink(Link):
    """The link of a worker, whose waiting advances virtual time; it takes `wakes` ns to wake."""

    def __init__(self, name: str, task: Task, up: Wire, random: Random, wakes: int) -> None:
        self._name = name
        self._task = task
        self._up = up
        self._random = random
        self._wakes = wakes
        self._arrived: deque[bytes] = deque()
        self._batch = new_batch(_AT_ONCE, _LONGEST_FRAME)
        self._closed = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def traffic(self) -> Traffic:
        return Traffic(0, 0, 0, 0)  # Nobody asks.

    def arrive(self, frames: list[bytes]) -> None:
        if self._closed:
            return
        self._arrived.extend(frames)
        self._task.tell(int(self._wakes * self._random.random()))

    def send(self, frame: bytes | memoryview) -> None:
        self._send([bytes(frame)])

    def send_rows(self, rows: FrameRows, first: int, count: int) -> None:
        self._send([bytes(rows.frame(index)) for index in range(first, first + count)])

    def _send(self, frames: list[bytes]) -> None:
        if self._closed:
            raise LinkError(f"{self._name} is closed.")
        self._up.send(frames)

    def receive(self, seconds: float) -> memoryview | None:
        return memoryview(self._arrived.popleft()) if self._wait(seconds) else None

    def receive_batch(self, seconds: float) -> FrameBatch | None:
        if not self._wait(seconds):
            return None
        batch = self._batch
        batch.first = batch.count = 0
        while self._arrived and batch.count < _AT_ONCE:
            batch.put(self._arrived.popleft())
        return batch

    def _wait(self, seconds: float) -> bool:
        if not self._arrived:
            if seconds <= 0:
                self._task.look()
                return False
            self._task.wait(seconds)
        return bool(self._arrived)

    def close(self) -> None:
        self._closed = True
        self._arrived.clear()


_MOST_BITS = 3
# Nanoseconds by which a frame may be late: from a window to a patience and more, in magnitudes.
_DELAYS = {FaultKind.REORDER: (10_000, SECOND), FaultKind.LATE: (1_000_000, 200 * SECOND)}


class Disturbance(WireFaults):
    """Draws faults from rates."""

    def __init__(self, line: str, rates: IncidentRates, random: Random) -> None:
        self._line = line
        self._random = random
        self._kinds = list(FaultKind)
        # Cumulative.
        self._chances = list(accumulate(getattr(rates, kind.value) for kind in FaultKind))
        self._total = sum(getattr(rates, kind.value) for kind in FaultKind)
        self.next = self._gap()

    def _gap(self) -> int:
        if self._total <= 0.0:
            return 1 << 62
        if self._total >= 1.0:
            return 0
        return int(math.log(1.0 - self._random.random()) / math.log(1.0 - self._total))

    def fault(self, frame: bytes) -> Fault:
        self._frames += self.next + 1
        self.next = self._gap()
        (kind,) = self._random.choices(self._kinds, cum_weights=self._chances)
        delay = self._delay(*_DELAYS[kind]) if kind in _DELAYS else 0
        bits = self._bits(8 * len(frame)) if kind is FaultKind.CORRUPT else ()
        return Fault(kind, self._line, self._frames, delay, bits)

    def _delay(self, least: int, most: int) -> int:
        return int(least * (most / least) ** self._random.random())

    def _bits(self, among: int) -> tuple[int, ...]:
        if not among:
            return ()
        number = self._random.randint(1, _MOST_BITS)
        return tuple(self._random.randrange(among) for _ in range(number))


_NEVER = 1 << 62


class ListedFaults(WireFaults):
    """Applies the faults listed in a scenario."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._left = sorted(faults, key=lambda fault: fault.frame, reverse=True)
        frames = {fault.frame for fault in self._left}
        if len(frames) < len(self._left) or min(frames, default=1) < 1:
            raise ScenarioError(
                f"Two faults of {self._left[0].line} have the same frame, or one has a frame "
                "below 1: number them from 1, each differently."
            )
        self.next = self._gap()

    def _gap(self) -> int:
        return self._left[-1].frame - self._frames - 1 if self._left else _NEVER

    def fault(self, _frame: bytes) -> Fault:
        fault = self._left.pop()
        self._frames = fault.frame
        self.next = self._gap()
        return fault
