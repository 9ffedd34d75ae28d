# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The one thread that forwards packets and runs the controllers' changes between them."""

import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from switchgnn.softswitch.forwarding import Forwarder, ForwardingCounts
from switchgnn.softswitch.ports import Port
from switchgnn.softswitch.traffic_manager import TrafficManager

Result = TypeVar("Result")

_LOG = logging.getLogger("softswitch.loop")

# Frames taken from one port before the other ports and the controllers are served.
_FRAMES_PER_TURN = 32
# Recirculations before the controllers' requests are served again.
_AGAIN_PER_TURN = 256


class EventLoop:
    """Waits for frames, timers and requests; ``forwarder`` is None until a program is loaded.

    Args:
        ports: the attached ports by number.
        queues: the queues whose packets leave when their time has come.
        counts: the counters for frames that no forwarder takes, and for errors.
    """

    def __init__(
        self, ports: Mapping[int, Port], queues: TrafficManager, counts: ForwardingCounts
    ) -> None:
        self.forwarder: Forwarder | None = None
        self._queues = queues
        self._counts = counts
        self._ports = {port.fileno(): (number, port) for number, port in ports.items()}
        self._requests: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._guard = threading.Lock()
        self._blocked: frozenset[int] = frozenset()
        self._accepting = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(self._wake, select.EPOLLIN)
        for descriptor in self._ports:
            self._epoll.register(descriptor, select.EPOLLIN)

    def start(self) -> None:
        """Start the thread."""
        self._accepting = True
        self._thread = threading.Thread(target=self._run, name="softswitch-loop", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and release what the loop holds; pending requests are run first."""
        if self._thread is not None:
            self._stopping = True
            os.eventfd_write(self._wake, 1)
            self._thread.join()
            self._thread = None
        self._epoll.close()
        os.close(self._wake)

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function between two packets and return its result or raise its error."""
        with self._guard:
            waiting = self._accepting and threading.current_thread() is not self._thread
            if waiting:
                future: Future[Result] = Future()
                self._requests.append((function, future))
                os.eventfd_write(self._wake, 1)
        return future.result() if waiting else function()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._turn()
        finally:
            with self._guard:
                self._accepting = False
            self._run_requests()

    def _turn(self) -> None:
        for descriptor, events in self._wait(self._timeout()):
            if descriptor == self._wake:
                os.eventfd_read(self._wake)
            else:
                self._serve_port(*self._ports[descriptor], events)
        self._run_requests()
        forwarder = self.forwarder
        if forwarder is not None:
            if forwarder.busy:
                self._guarded(forwarder.run_again, _AGAIN_PER_TURN)
            if forwarder.waiting or self._queues.settings.limited:
                self._guarded(forwarder.drain)
            if forwarder.held or self._blocked:
                self._watch_blocked(frozenset(forwarder.held))

    def _watch_blocked(self, blocked: frozenset[int]) -> None:
        """Watch exactly the blocked ports for room, so that they can send again."""
        for descriptor, (number, _) in self._ports.items():
            if (number in blocked) != (number in self._blocked):
                output = select.EPOLLOUT if number in blocked else 0
                self._epoll.modify(descriptor, select.EPOLLIN | output)
        self._blocked = blocked

    def _wait(self, timeout: float) -> list[tuple[int, int]]:
        if timeout > 0.0:
            # A line sends many frames in a millisecond, the unit of epoll; select waits shorter.
            select.select([self._epoll], [], [], timeout)
            timeout = 0.0
        return self._epoll.poll(timeout)

    def _timeout(self) -> float:
        if self.forwarder is not None and (self.forwarder.busy or self.forwarder.waiting):
            return 0.0
        if not self._queues.settings.limited:
            return -1.0
        due = self._queues.next_time()
        return -1.0 if due is None else max(0.0, due - time.monotonic())

    def _run_requests(self) -> None:
        while self._requests:
            function, future = self._requests.popleft()
            try:
                future.set_result(function())
            except BaseException as error:  # the caller's thread raises it
                future.set_exception(error)

    def _serve_port(self, number: int, port: Port, events: int) -> None:
        if events & select.EPOLLOUT and self.forwarder is not None:
            self._guarded(self.forwarder.writable, number)
        if events & ~select.EPOLLOUT:
            self._read_port(number, port)

    def _read_port(self, number: int, port: Port) -> None:
        forwarder = self.forwarder
        for _ in range(_FRAMES_PER_TURN):
            # Recirculated packets go first. If they never end, a new frame must still be
            # taken now and then, or the ports would never be read again.
            if forwarder is not None and forwarder.busy:
                self._guarded(forwarder.run_again, _AGAIN_PER_TURN)
            try:
                frame = port.receive(port.frame_bytes)
            except OSError:
                # There is nothing more to read, or the interface or the peer is away.
                return
            if forwarder is None:
                self._counts.without_program += 1
                continue
            self._guarded(forwarder.receive, number, frame)
            if forwarder.busy:
                return

    def _guarded(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            function(*arguments)
        except Exception:
            # A packet on which the program fails is lost; the switch continues with the next.
            self._counts.failures += 1
            _LOG.exception("A packet was lost to an error in the program.")
