"""Virtual time: blocking programs in greenlets, and the trace of what happens."""

import hashlib
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from switchgnn.host.wire.header import BODY_AT, HEADER_AT

SECOND = 1_000_000_000
# Not 0, which means "never" to hosts.
BEGIN = 1_000 * SECOND


class Scheduler:
    """A heap of events; those of the same time happen in the order of their scheduling."""

    def __init__(self, *, keeps_trace: bool = False) -> None:
        self.trace = Trace(self, keeps=keeps_trace)  # what has happened
        self.now = BEGIN  # virtual time in nanoseconds
        self.events = 0  # those that are past
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._asked = 0
        self._marks: list[tuple[int, int, Callable[[], None]]] = []

    @property
    def seconds(self) -> float:
        return (self.now - BEGIN) / SECOND

    def at(self, time: int, call: Callable[..., None], *arguments: Any) -> None:
        """Call a function at a time in nanoseconds, or now if that is past."""
        self._asked += 1
        heappush(self._heap, (max(time, self.now), self._asked, call, arguments))

    def after(self, nanoseconds: int, call: Callable[..., None], *arguments: Any) -> None:
        self._asked += 1
        heappush(self._heap, (self.now + nanoseconds, self._asked, call, arguments))

    def mark(self, events: int, call: Callable[[], None]) -> None:
        """Call a function after a number of events from now, before the next one."""
        self._asked += 1
        heappush(self._marks, (self.events + events, self._asked, call))

    def run(self, seconds: float, done: Callable[[], bool]) -> bool:
        """Process events until `done` (checked after each); return whether `seconds` sufficed."""
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


# A task that polls this often without waiting never lets virtual time advance.
_MOST_LOOKS = 100_000


class HangError(Exception):
    """A program runs on without waiting for anything."""


class Task:
    """A program that waits in virtual time."""

    def __init__(self, scheduler: Scheduler, name: str, work: Callable[["Task"], None]) -> None:
        self.name = name
        self.error: Exception | None = None  # what ended it, if any
        self.ended = False
        self.ended_at = 0  # in nanoseconds
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
        self._waiting = True
        self._scheduler.after(delay, self._resume, self._waits, True)

    def wait(self, seconds: float) -> bool:
        """Wait until `tell` or a time-out; return whether it was told."""
        if self.ended:
            # Clean-up code of a killed task must not wait.
            raise GreenletExit
        self._looks = 0
        self._told = self._woken = False
        self._waiting = True
        # One nanosecond more, so that the time is over on every clock.
        self._scheduler.after(int(seconds * SECOND) + 1, self._resume, self._waits, False)
        self._greenlet.parent.switch()
        return self._woken

    def sleep(self, nanoseconds: int) -> None:
        until = self._scheduler.now + nanoseconds
        while self._scheduler.now < until:
            self.wait((until - self._scheduler.now) / SECOND)

    def note(self, what: str) -> None:
        self._scheduler.trace.note(self.name, what)

    def look(self) -> None:
        self._looks += 1
        if self._looks > _MOST_LOOKS:
            raise HangError(f"{self.name} polls for frames forever, and never waits.")

    def tell(self, delay: int) -> None:
        """Wake it that many nanoseconds from now, if it waits."""
        if self._waiting and not self._told:
            self._told = True
            self._scheduler.after(delay, self._resume, self._waits, True)

    def stand_still(self, seconds: float) -> None:
        """Suspend it for a time; a wake-up in the meantime takes effect then."""
        self._still_until = max(self._still_until, self._scheduler.now + int(seconds * SECOND))

    def kill(self) -> None:
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
    """A clock of virtual time, which may be ahead."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._ahead = 0

    def now(self) -> float:
        return (self._scheduler.now + self._ahead) / SECOND

    def show(self, nanoseconds: int) -> None:
        self._ahead = nanoseconds - self._scheduler.now

    def jump(self, seconds: float) -> None:
        self._ahead += int(seconds * SECOND)


# Lines are hashed together, which is cheaper than one by one.
_TOGETHER = 512


class Trace:
    """Keeps the digest of all lines, and optionally the lines.

    A line has the time in nanoseconds, where, what, and for a frame its time of arrival and its
    headers in hexadecimal (their checksum covers the body). A corrupted frame has the headers that
    it was sent with, and its fate names the bits.
    """

    def __init__(self, scheduler: Scheduler, *, keeps: bool = False) -> None:
        self._scheduler = scheduler
        self._digest = hashlib.sha256()
        self._fresh: list[str] = []
        self._keeps = keeps
        self.lines: list[str] = []

    def frame(self, where: str, fate: str, arrives: int, frame: bytes) -> None:
        """Note the fate of a frame on a line, and when it arrives in nanoseconds; 0: never."""
        self._fresh.append(
            f"{self._scheduler.now} {where} {fate} {arrives} {frame[HEADER_AT:BODY_AT].hex()}"
        )
        if len(self._fresh) >= _TOGETHER:
            self._take()

    def note(self, where: str, what: str) -> None:
        self._fresh.append(f"{self._scheduler.now} {where} {what}")

    @property
    def digest(self) -> str:
        self._take()
        return self._digest.hexdigest()

    def _take(self) -> None:
        if self._fresh:
            self._digest.update(("\n".join(self._fresh) + "\n").encode())
            if self._keeps:
                self.lines += self._fresh
            self._fresh.clear()
