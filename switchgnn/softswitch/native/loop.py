# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The threads of a native engine: one forwards, one hands notices to Python."""

import logging
import threading
from collections.abc import Callable, Mapping
from ctypes import byref, c_uint32, create_string_buffer
from functools import partial
from typing import TypeVar

from switchgnn.softswitch.forwarding import Sender
from switchgnn.softswitch.native.engine import Attachment, NativeEngine, PortKind
from switchgnn.softswitch.ports import EthernetPort, Port
from switchgnn.softswitch.state import log_message

Result = TypeVar("Result")

_LOG = logging.getLogger("softswitch.loop")
_NOTICE_ROOM = 1 << 18
_FRAME = 0


class NativeLoop:
    """An event loop whose forwarding thread never waits for the GIL."""

    def __init__(
        self,
        engine: NativeEngine,
        ports: Mapping[int, Port],
        cpu_port: int | None = None,
        packet_in: Sender | None = None,
    ) -> None:
        self.engine = engine
        self._switch = engine.switch
        self._ports = ports
        self._cpu_port = cpu_port if packet_in is not None else None
        self._packet_in = packet_in
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Attach the ports and start the threads."""
        self.engine.attach({n: _attachment(port) for n, port in self._ports.items()})
        if self._cpu_port is not None:
            self.engine.attach({self._cpu_port: Attachment(PortKind.CONTROLLER)})
        self._threads = [
            threading.Thread(target=self._forward, name="softswitch-loop", daemon=True),
            threading.Thread(target=self._hand_over, name="softswitch-notices", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads and detach the ports."""
        self._switch.call("switch_stop")
        self._switch.call("switch_end_notices")
        for thread in self._threads:
            thread.join()
        detached = dict.fromkeys(self._ports, Attachment(PortKind.NONE))
        if self._cpu_port is not None:
            detached[self._cpu_port] = Attachment(PortKind.NONE)
        self.engine.attach(detached)

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function between two packets and return its result or raise its error."""
        self._switch.wait("switch_enter")
        try:
            return function()
        finally:
            self._switch.call("switch_leave")

    def _forward(self) -> None:
        self._switch.wait("switch_run")

    def _hand_over(self) -> None:
        """Send packet-ins and write log messages until the engine stops."""
        kind, number = c_uint32(), c_uint32()
        room = create_string_buffer(_NOTICE_ROOM)
        place = (byref(kind), byref(number), room, _NOTICE_ROOM)
        while (length := self._switch.wait("switch_notice", *place)) >= 0:
            notice = room.raw[:length]
            try:
                if kind.value == _FRAME:
                    self._send(notice)
                else:
                    log_message(self.engine.messages[number.value], _logged_numbers(notice))
            except Exception:
                _LOG.exception("A packet-in or a log message was lost.")

    def _send(self, frame: bytes) -> None:
        if self._packet_in is None or self._cpu_port is None:
            return
        if not self._packet_in(frame):
            self.call(partial(self._switch.call, "switch_not_taken", self._cpu_port))


def _attachment(port: Port) -> Attachment:
    kind = PortKind.PACKET_SOCKET if isinstance(port, EthernetPort) else PortKind.SOCKET
    return Attachment(kind, port.fileno(), port.frame_bytes, port.may_refuse)


def _logged_numbers(data: bytes) -> tuple[int, ...]:
    """Decode numbers, each written as a sign byte, a count of words, and the words."""
    numbers = []
    place = 0
    while place < len(data):
        signed, words = bool(data[place]), data[place + 1]
        begin, place = place + 2, place + 2 + 8 * words
        numbers.append(int.from_bytes(data[begin:place], "little", signed=signed))
    return tuple(numbers)
