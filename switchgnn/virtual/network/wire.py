# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One direction of a line."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from switchgnn.virtual.network.disturbance import Disturbance
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
    """

    scheduler: Scheduler
    trace: Trace
    random: Random
    latency: int
    jitter: int
    fates: Counter[str]


class Wire:
    """Takes frames from one end to the other, in order but for those that something happens to.

    Args:
        name: the line and the direction, such as `w3.up`.
        ways: what all lines share.
        disturbance: what happens to frames.
        deliver: takes those that arrive.
    """

    def __init__(self, name: str, ways: Ways, disturbance: Disturbance, deliver: Deliver) -> None:
        self.name = name
        self._ways = ways
        self._disturbance = disturbance
        self._deliver = deliver
        self._last = 0
        self._silent_until = 0

    def silence(self, seconds: float) -> None:
        """Lose everything for that long."""
        until = self._ways.scheduler.now + int(seconds * SECOND)
        self._silent_until = max(self._silent_until, until)

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
        if self._disturbance.next < len(frames):
            frames = self._disturbed(frames, arrives)
        else:
            self._disturbance.passed(len(frames))
        for frame in frames:
            trace.frame(self.name, _PASSED, arrives, frame)
        if frames:
            ways.fates[_PASSED] += len(frames)
            ways.scheduler.at(arrives, self._deliver, frames)

    def _disturbed(self, frames: list[bytes], arrives: int) -> list[bytes]:
        """Let happen what happens; return the frames that arrive in their order."""
        in_order: list[bytes] = []
        place = 0
        while (until := place + self._disturbance.next) < len(frames):
            in_order += frames[place:until]
            in_order += self._disturb(frames[until], arrives)
            place = until + 1
        self._disturbance.passed(len(frames) - place)
        return in_order + frames[place:]

    def _disturb(self, frame: bytes, arrives: int) -> list[bytes]:
        disturbance = self._disturbance
        fate = disturbance.fate()
        if fate in ("duplicate", "corrupt", "loss"):
            # What arrives has a line of its own besides.
            self._ways.trace.frame(self.name, fate, 0, frame)
            if fate == "loss":
                return []
            return [frame, frame] if fate == "duplicate" else [disturbance.corrupted(frame)]
        later = arrives + disturbance.delay(fate)
        self._ways.trace.frame(self.name, fate, later, frame)
        self._ways.scheduler.at(later, self._deliver, [frame])
        return [frame] if fate == "late" else []
