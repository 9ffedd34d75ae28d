# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One direction of a line."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from switchgnn.virtual.scenario.scenario import Fault, FaultKind
from switchgnn.virtual.timing.scheduler import SECOND, Scheduler
from switchgnn.virtual.trace import Trace

Deliver = Callable[[list[bytes]], None]
_PASSED = "passed"
_SILENT = "silence"


@dataclass(frozen=True)
class Ways:
    """What all lines of a run share.

    Attributes:
        scheduler: brings frames to the other end.
        trace: hears of each frame.
        random: where delays are drawn from.
        latency, jitter: nanoseconds of a way, and how much more it may be.
        fates: frames by what became of them.
        faults: what has happened to single frames.
    """

    scheduler: Scheduler
    trace: Trace
    random: Random
    latency: int
    jitter: int
    fates: Counter[str]
    faults: list[Fault]


class Faults(Protocol):
    """Says to which frames of a line something happens.

    Attributes:
        next: how many frames pass before the next one that something happens to.
    """

    next: int

    def passed(self, frames: int) -> None:
        """Take note of frames, fewer than ``next``, that nothing happens to."""

    def fault(self, frame: bytes) -> Fault:
        """Return what happens to the frame that is next, and go on behind it."""


class Wire:
    """Takes frames from one end to the other, in order but for those that something happens to.

    Args:
        name: the line and the direction, such as `w3.up`.
        ways: what all lines share.
        faults: what happens to frames.
        deliver: takes those that arrive.
    """

    def __init__(self, name: str, ways: Ways, faults: Faults, deliver: Deliver) -> None:
        self.name = name
        self._ways = ways
        self._faults = faults
        self._deliver = deliver
        self._last = 0
        self._silent_until = 0
        self._forgotten = 0

    def silence(self, seconds: float) -> None:
        """Lose everything for that long."""
        until = self._ways.scheduler.now + int(seconds * SECOND)
        self._silent_until = max(self._silent_until, until)

    def forget_late(self) -> None:
        """Lose what was to arrive later than what was sent with it."""
        self._forgotten += 1

    def send(self, frames: list[bytes]) -> None:
        """Take frames that leave together."""
        ways, trace = self._ways, self._ways.trace
        now = ways.scheduler.now
        if now < self._silent_until:
            ways.fates[_SILENT] += len(frames)
            for frame in frames:
                trace.frame(self.name, _SILENT, 0, frame)
            return
        arrives = now + ways.latency + int(ways.jitter * ways.random.random())
        # Frames do not overtake each other unless that is their fate.
        self._last = arrives = max(arrives, self._last)
        if self._faults.next < len(frames):
            frames = self._disturbed(frames, arrives)
        else:
            self._faults.passed(len(frames))
            self._pass(frames, arrives)
        if frames:
            ways.scheduler.at(arrives, self._deliver, frames)

    def _pass(self, frames: list[bytes], arrives: int) -> list[bytes]:
        """Take note that nothing happens to frames; return them."""
        self._ways.fates[_PASSED] += len(frames)
        for frame in frames:
            self._ways.trace.frame(self.name, _PASSED, arrives, frame)
        return frames

    def _disturbed(self, frames: list[bytes], arrives: int) -> list[bytes]:
        """Let happen what happens; return the frames that arrive in their order."""
        in_order: list[bytes] = []
        place = 0
        while (until := place + self._faults.next) < len(frames):
            in_order += self._pass(frames[place:until], arrives)
            in_order += self._disturb(frames[until], arrives)
            place = until + 1
        self._faults.passed(len(frames) - place)
        return in_order + self._pass(frames[place:], arrives)

    def _disturb(self, frame: bytes, arrives: int) -> list[bytes]:
        ways, fault = self._ways, self._faults.fault(frame)
        kind = fault.kind
        ways.fates[kind.value] += 1
        ways.faults.append(fault)
        in_order = []
        if kind in (FaultKind.DUPLICATE, FaultKind.LATE):
            in_order += self._pass([frame], arrives)
        if kind is FaultKind.LOSS:
            ways.trace.frame(self.name, kind.value, 0, frame)
        elif kind is FaultKind.DUPLICATE:
            ways.trace.frame(self.name, kind.value, arrives, frame)
            in_order.append(frame)
        elif kind is FaultKind.CORRUPT:
            bits = ",".join(map(str, fault.bits))
            ways.trace.frame(self.name, f"{kind.value}:{bits}", arrives, frame)
            in_order.append(_changed(frame, fault.bits))
        else:
            later = arrives + fault.delay
            ways.trace.frame(self.name, kind.value, later, frame)
            ways.scheduler.at(later, self._arrive_late, self._forgotten, frame)
        return in_order

    def _arrive_late(self, forgotten: int, frame: bytes) -> None:
        # Unless what was late then was lost since.
        if forgotten == self._forgotten:
            self._deliver([frame])


def _changed(frame: bytes, bits: tuple[int, ...]) -> bytes:
    changed = bytearray(frame)
    for bit in bits:
        if bit < 8 * len(changed):
            changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
