"""The native engine of a program (packets, state and counts) and its threads."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from ctypes import c_double, c_int64, c_uint64, create_string_buffer
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from switchgnn.base.native import find_compiler
from switchgnn.softswitch.base.errors import UnsupportedProgramError
from switchgnn.softswitch.base.ports import CLASSES, ForwardingCounts, Port, QueueSettings, Sender
from switchgnn.softswitch.base.program import LoadedProgram
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.native.build import (
    Backend,
    Library,
    NoCompilerError,
    Switch,
    backend_here,
    compiled_library,
    table_shapes,
)
from switchgnn.softswitch.native.source import program_source
from switchgnn.softswitch.native.state import NativeState

Result = TypeVar("Result")

PORTS = 512
_SCALARS = [each.name for each in fields(ForwardingCounts) if each.default == 0]
_LOOP_LOG = logging.getLogger("softswitch.loop")
_NOTICE_ROOM = 1 << 18
_LOG = logging.getLogger("softswitch.switch")


class PortKind(IntEnum):
    """Kinds of ports, numbered as in runtime/ports.h."""

    NONE = 0
    SOCKET = 1
    PACKET_SOCKET = 2
    CONTROLLER = 3
    CAPTURED = 4


class Attachment(NamedTuple):
    """The arguments of ``switch_attach``; see :class:`Port`."""

    kind: PortKind
    descriptor: int = -1
    frame_bytes: int = 0
    may_refuse: bool = False


class NativeProgram(NamedTuple):
    """A program and its native code."""

    program: LoadedProgram
    library: Library


def native_library(given: GivenProgram) -> Path:
    """Return the library of a program; translate and compile it unless cached."""
    return compiled_library(given.document, lambda: program_source(given.lowered))


def load_native(given: GivenProgram) -> NativeProgram:
    """Load the native code of a program; compile it unless cached."""
    library = native_library(given)
    try:
        return NativeProgram(given.program, Library(library))
    except OSError as error:
        raise NoCompilerError(f"The compiled program cannot be loaded: {error}.") from error


class NativeEngine:
    """The packet path of a native program; callers must serialize their calls."""

    def __init__(self, native: NativeProgram, queues: QueueSettings) -> None:
        self.switch = Switch(native.library)
        self.state = NativeState(native.program, self.switch, table_shapes(native.program))
        rates = (queues.port_rates.get(port, queues.rate or 0.0) for port in range(PORTS))
        limits = (queues.depth, queues.bandwidth or 0.0, (c_double * PORTS)(*rates), queues.limited)
        self.switch.call("switch_limits", *limits, (c_double * CLASSES)(*queues.shares))
        array, call = self.switch.array, self.switch.call
        self._counts = array(c_uint64, 4 * PORTS + len(_SCALARS), call("switch_counts"))
        self._tail_drops = array(c_uint64, PORTS, call("switch_tail_drops"))
        self._lengths = array(c_int64, PORTS * CLASSES, call("switch_lengths"))

    def attach(self, ports: Mapping[int, Attachment]) -> None:
        """Attach ports by their numbers."""
        for number, port in ports.items():
            self.switch.call("switch_attach", number, *port)

    def clear(self) -> None:
        """Drop all queued packets."""
        self.switch.call("switch_clear")

    def receive(self, port: int, frame: bytes) -> None:
        """Process a packet that arrived on a port."""
        self.switch.call("switch_receive", port, frame, len(frame))

    def run_again(self, limit: int) -> bool:
        """Process recirculated and resubmitted packets; return whether more wait."""
        return bool(self.switch.call("switch_again", limit))

    @property
    def counts(self) -> ForwardingCounts:
        """The packet counts."""
        values = list(self._counts)
        received, sent, unattached, errors = (
            _by_port(values[i * PORTS : (i + 1) * PORTS]) for i in range(4)
        )
        tail_drops = _by_port(self._tail_drops)
        counts = ForwardingCounts(received, sent, unattached, errors, tail_drops)
        for name, value in zip(_SCALARS, values[4 * PORTS :], strict=True):
            setattr(counts, name, value)
        return counts

    def length(self, port: int) -> int:
        """Return the number of packets queued for a port."""
        return sum(self._lengths[port * CLASSES : (port + 1) * CLASSES])


def _by_port(values: list[int]) -> Counter[int]:
    return Counter({port: count for port, count in enumerate(values) if count})


class NativeLoop:
    """An event loop whose forwarding thread never waits for the GIL."""

    def __init__(
        self,
        engine: NativeEngine,
        ports: Mapping[int, Port],
        cpu_port: int | None = None,
        packet_in: Sender | None = None,
    ) -> None:
        self._engine = engine
        self._switch = engine.switch
        self._cpu_port = cpu_port
        self._packet_in = packet_in
        self._attached = {number: _attachment(port) for number, port in ports.items()}
        if cpu_port is not None and packet_in is not None:
            self._attached[cpu_port] = Attachment(PortKind.CONTROLLER)
        forward = partial(self._switch.wait, "switch_run")
        self._threads = [
            threading.Thread(target=forward, name="softswitch-loop", daemon=True),
            threading.Thread(target=self._hand_over, name="softswitch-notices", daemon=True),
        ]

    def start(self) -> None:
        """Attach the ports and start the threads."""
        self._engine.attach(self._attached)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads and detach the ports."""
        self._switch.call("switch_stop")
        self._switch.call("switch_end_notices")
        for thread in self._threads:
            thread.join()
        self._engine.attach(dict.fromkeys(self._attached, Attachment(PortKind.NONE)))

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function between two packets and return its result or raise its error."""
        self._switch.wait("switch_enter")
        try:
            return function()
        finally:
            self._switch.call("switch_leave")

    def _hand_over(self) -> None:
        room = create_string_buffer(_NOTICE_ROOM)
        while (length := self._switch.wait("switch_notice", room, _NOTICE_ROOM)) >= 0:
            try:
                if self._packet_in is not None and not self._packet_in(room.raw[:length]):
                    self.call(partial(self._switch.call, "switch_not_taken", self._cpu_port))
            except Exception:
                _LOOP_LOG.exception("A packet-in was lost.")


def _attachment(port: Port) -> Attachment:
    kind = PortKind.PACKET_SOCKET if port.is_packet else PortKind.SOCKET
    return Attachment(kind, port.fileno(), port.frame_bytes, port.may_refuse)


@dataclass(frozen=True)
class Ahead:
    """The back end chosen for a program."""

    backend: Backend
    seconds: float  # compilation time; near 0 for cached programs
    reason: str | None = None  # why AUTO chose Python, or None


def compile_ahead(config: bytes, asked: Backend | None = None) -> Ahead:
    """Compile a program before switches are started, which then find it in the cache."""
    chosen, begin = backend_here(asked), time.monotonic()
    made = made_natively(GivenProgram(config), chosen, native_library)
    if isinstance(made, Path):
        return Ahead(Backend.NATIVE, time.monotonic() - begin)
    return Ahead(Backend.PYTHON, 0.0, made)


def made_natively(
    given: GivenProgram, chosen: Backend, make: Callable[[GivenProgram], Result]
) -> Result | str | None:
    """Return what is made of a program as native code, or why it is interpreted, if not asked.

    SoftSwitchError if the back end cannot run the program.
    """
    if chosen is Backend.PYTHON:
        return None
    if chosen is Backend.AUTO and find_compiler() is None:
        return "There is no C++ compiler"
    try:
        return make(given)
    except (NoCompilerError, UnsupportedProgramError) as error:
        if chosen is Backend.NATIVE:
            raise
        _ = given.lowered  # or raise what no back end runs
        _LOG.warning("The program is interpreted: %s", error)
        return str(error)
