# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual time: blocking programs in greenlets, and the trace of what happens."""

import hashlib
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from switchgnn.host.wire.header import BODY_AT, HEADER_AT

SECOND = 1_000_000_000
# No time is 0: to hosts that would be "never".
BEGIN = 1_000 * SECOND


class Scheduler:
    """A heap of events; what happens at the same time happens in the order it was asked for.

    Attributes:
        now: virtual time in nanoseconds.
        events: how many events have happened.
    """

    def __init__(self) -> None:
        self.now = BEGIN
        self.events = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._asked = 0
        self._marks: list[tuple[int, int, Callable[[], None]]] = []

    @property
    def seconds(self) -> float:
        """Virtual seconds since the beginning."""
        return (self.now - BEGIN) / SECOND

    def at(self, time: int, call: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401
        """Call a function at a time; at once if that is over.

        Args:
            time: nanoseconds.
            call: the function.
            arguments: its arguments.
        """
        self._asked += 1
        heappush(self._heap, (max(time, self.now), self._asked, call, arguments))

    def after(self, nanoseconds: int, call: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401
        """Call a function that much later.

        Args:
            nanoseconds: how much.
            call: the function.
            arguments: its arguments.
        """
        self._asked += 1
        heappush(self._heap, (self.now + nanoseconds, self._asked, call, arguments))

    def mark(self, events: int, call: Callable[[], None]) -> None:
        """Call a function behind that many events from now, in front of the next one."""
        self._asked += 1
        heappush(self._marks, (self.events + events, self._asked, call))

    def run(self, seconds: float, done: Callable[[], bool]) -> bool:
        """Let things happen until all is done; tell whether that was so in time.

        Args:
            seconds: how long it may take.
            done: looked at behind each event.
        """
        heap, marks = self._heap, self._marks
        end = self.now + int(seconds * SECOND)
        while heap and not done():
            while marks and self.events >= marks[0][0]:
                heappop(marks)[2]()
            time, _, call, arguments = heappop(heap)
            if time > end:
                return False
            self.now = time
            self.events += 1
            call(*arguments)
        return done()


# Who looks so often without waiting never lets virtual time go on.
_MOST_LOOKS = 100_000


class HangError(Exception):
    """A program runs on without waiting for anything."""


class Task:
    """A program that waits in virtual time.

    Attributes:
        name: as given.
        error: what ended it, if that was an error.
        ended: whether it runs no more.
        ended_at: since when, in nanoseconds.
    """

    def __init__(self, scheduler: Scheduler, name: str, work: Callable[["Task"], None]) -> None:
        self.name = name
        self.error: Exception | None = None
        self.ended = False
        self.ended_at = 0
        self._scheduler = scheduler
        self._work = work
        self._greenlet = greenlet(self._run)
        self._waits = 0
        self._waiting = False
        self._told = False
        self._woken = False
        self._still_until = 0
        self._looks = 0

    def start(self, delay: int = 0) -> None:
        """Begin that many nanoseconds from now."""
        self._waiting = True
        self._scheduler.after(delay, self._resume, self._waits, True)

    def wait(self, seconds: float) -> bool:
        """Wait until it is told something, or the time is over; tell whether it was told."""
        if self.ended:
            # What cleans up behind itself when it is killed waits for nothing any more.
            raise GreenletExit
        self._looks = 0
        self._told = self._woken = False
        self._waiting = True
        # One nanosecond more, so that the time that was asked for is over on every clock.
        self._scheduler.after(int(seconds * SECOND) + 1, self._resume, self._waits, False)
        self._greenlet.parent.switch()
        return self._woken

    def sleep(self, nanoseconds: int) -> None:
        """Wait for that long, whatever it is told."""
        until = self._scheduler.now + nanoseconds
        while self._scheduler.now < until:
            self.wait((until - self._scheduler.now) / SECOND)

    def look(self) -> None:
        """Take note that it looks for something without waiting for it."""
        self._looks += 1
        if self._looks > _MOST_LOOKS:
            raise HangError(f"{self.name} looks for frames again and again, and never waits.")

    def tell(self, delay: int) -> None:
        """Wake it that many nanoseconds from now, if it waits."""
        if self._waiting and not self._told:
            self._told = True
            self._scheduler.after(delay, self._resume, self._waits, True)

    @property
    def stands_still(self) -> bool:
        """Whether it runs no more for a time, or for good."""
        return self.ended or self._scheduler.now < self._still_until

    def stand_still(self, seconds: float) -> None:
        """Run no more for that long; what wakes it meanwhile wakes it then."""
        self._still_until = max(self._still_until, self._scheduler.now + int(seconds * SECOND))

    def kill(self) -> None:
        """End it where it stands."""
        if self.ended:
            return
        self.ended, self._waiting = True, False
        if self._greenlet:
            self._greenlet.parent = getcurrent()
            self._greenlet.throw(GreenletExit)

    def _resume(self, wait: int, told: bool) -> None:
        if not self._waiting or wait != self._waits:
            return
        if self._scheduler.now < self._still_until:
            self._scheduler.at(self._still_until, self._resume, wait, told)
            return
        self._waiting = False
        self._waits += 1
        self._woken = told
        self._greenlet.parent = getcurrent()
        self._greenlet.switch()

    def _run(self) -> None:
        try:
            self._work(self)
        except Exception as error:
            if not self.ended:
                self.error = error
        finally:
            self.ended, self.ended_at = True, self._scheduler.now


class VirtualClock:
    """A clock that shows virtual time, or is ahead of it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._ahead = 0

    def now(self) -> float:
        """Return what it shows, in seconds."""
        return (self._scheduler.now + self._ahead) / SECOND

    def jump(self, seconds: float) -> None:
        """Be ahead by that much more."""
        self._ahead += int(seconds * SECOND)


# Lines are hashed together, which is cheaper than one by one.
_TOGETHER = 512


class Trace:
    """Keeps the digest of all lines, and the lines themselves if they are wanted.

    A line has the time in nanoseconds, where, what, and for a frame the time at which it comes and
    its headers in hexadecimal; their checksum is over the body, too. A frame that was changed
    on its way has the headers that it was sent with, and what became of it says the bits.

    Attributes:
        lines: the lines, if they are kept.
    """

    def __init__(self, scheduler: Scheduler, *, keeps: bool = False) -> None:
        self._scheduler = scheduler
        self._digest = hashlib.sha256()
        self._fresh: list[str] = []
        self._keeps = keeps
        self.lines: list[str] = []

    def frame(self, where: str, fate: str, arrives: int, frame: bytes) -> None:
        """Note what becomes of a frame on a line.

        Args:
            where: the line and the direction.
            fate: what becomes of it.
            arrives: when it arrives, in nanoseconds; 0 if it does not.
            frame: the whole frame.
        """
        self._fresh.append(
            f"{self._scheduler.now} {where} {fate} {arrives} {frame[HEADER_AT:BODY_AT].hex()}"
        )
        if len(self._fresh) >= _TOGETHER:
            self._take()

    def note(self, where: str, what: str) -> None:
        """Note something else."""
        self._fresh.append(f"{self._scheduler.now} {where} {what}")

    @property
    def digest(self) -> str:
        """SHA-256 of all lines so far."""
        self._take()
        return self._digest.hexdigest()

    def _take(self) -> None:
        if self._fresh:
            self._digest.update(("\n".join(self._fresh) + "\n").encode())
            if self._keeps:
                self.lines += self._fresh
            self._fresh.clear()
