# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Events in the order of their virtual time."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

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
