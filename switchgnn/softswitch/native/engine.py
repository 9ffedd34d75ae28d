# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The native engine of a program: packets, state and counts."""

import logging
import time
from collections import Counter
from collections.abc import Mapping
from ctypes import c_int32, c_int64, c_uint32, c_uint64, create_string_buffer
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from switchgnn.base.native import find_compiler
from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.forwarding import ForwardingCounts
from switchgnn.softswitch.loader import GivenProgram
from switchgnn.softswitch.native.build import (
    Backend,
    NoCompilerError,
    backend_here,
    compiled_library,
)
from switchgnn.softswitch.native.library import Library, TableShape, numbers, table_shapes
from switchgnn.softswitch.native.state import NativeState
from switchgnn.softswitch.native.translation.program_source import program_source
from switchgnn.softswitch.program import LoadedProgram
from switchgnn.softswitch.replication import CloneSession, Replica, ReplicationEngine
from switchgnn.softswitch.traffic_manager import CLASSES, QueueSettings

PORTS = 512
_SCALARS = (
    "ingress_drops",
    "egress_drops",
    "recirculated",
    "resubmitted",
    "again_drops",
    "without_program",
    "failures",
)
# Captured frames, each after its port and length.
_FRAME_HEAD = Struct("=II")
_LONGEST = _FRAME_HEAD.size + (1 << 17)
_ROOM = 2 * _LONGEST


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


@dataclass(frozen=True)
class NativeProgram:
    """A program and its native code."""

    program: LoadedProgram
    library: Library

    @cached_property
    def shapes(self) -> Mapping[str, TableShape]:
        """The layouts of its tables, by name."""
        return table_shapes(self.program)


def native_library(given: GivenProgram) -> Path:
    """Return the library of a program; translate and compile it unless cached."""
    return compiled_library(given.document, lambda: program_source(given.compiled).text)


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
        self.switch = native.library.new()
        self.state = NativeState(native.program, self.switch, native.shapes)
        self.messages = native.library.messages()
        self._set_limits(queues)
        array, call = self.switch.array, self.switch.call
        self._counts = array(c_uint64, 4 * PORTS + len(_SCALARS), call("switch_counts"))
        self._tail_drops = array(c_uint64, PORTS, call("switch_tail_drops"))
        self._lengths = array(c_int64, PORTS * CLASSES, call("switch_lengths"))
        self._captured = self.switch.bound("switch_captured")
        self._room = create_string_buffer(_ROOM)
        self._moved = memoryview(self._room).cast("B")

    def _set_limits(self, queues: QueueSettings) -> None:
        self.switch.call("switch_limits", queues.depth, queues.rate or 0.0, queues.bandwidth or 0.0)
        for port, rate in queues.port_rates.items():
            self.switch.call("switch_port_rate", port, rate)

    def attach(self, ports: Mapping[int, Attachment]) -> None:
        """Attach ports by their numbers."""
        for number, port in ports.items():
            self.switch.call("switch_attach", number, *port)

    def publish(self, replication: ReplicationEngine) -> None:
        """Follow changes of the multicast groups and clone sessions."""
        replication.groups.subscribe(self._group)
        replication.sessions.subscribe(self._session)

    def _group(self, ident: int, replicas: tuple[Replica, ...] | None) -> None:
        if replicas is None:
            self.switch.call("switch_no_group", ident)
        else:
            self.switch.call("switch_group", ident, *_arrays(replicas))

    def _session(self, ident: int, session: CloneSession | None) -> None:
        if session is None:
            self.switch.call("switch_no_session", ident)
        else:
            replicas = _arrays(session.replicas)
            self.switch.call("switch_session", ident, *replicas, session.max_length)

    def clear(self) -> None:
        """Drop all queued packets."""
        self.switch.call("switch_clear")

    def receive(self, port: int, frame: bytes) -> None:
        """Process a packet that arrived on a port."""
        self.switch.call("switch_receive", port, frame, len(frame))

    def run_again(self, limit: int) -> bool:
        """Process recirculated and resubmitted packets; return whether more wait."""
        return bool(self.switch.call("switch_again", limit))

    def captured(self) -> list[tuple[int, bytes]]:
        """Return the frames sent to captured ports since the last call, as (port, frame)."""
        frames: list[tuple[int, bytes]] = []
        used = _ROOM
        # More frames remain only if another of the longest would not fit.
        while used > _ROOM - _LONGEST:
            used = self._captured(self._room, _ROOM)
            end = 0
            while end < used:
                port, length = _FRAME_HEAD.unpack_from(self._moved, end)
                begin = end + _FRAME_HEAD.size
                end = begin + length
                frames.append((port, self._moved[begin:end].tobytes()))
        return frames

    def counts(self) -> ForwardingCounts:
        """Return the packet counts."""
        values = list(self._counts)
        by_port = [_by_port(values[i * PORTS : (i + 1) * PORTS]) for i in range(4)]
        counts = ForwardingCounts(*by_port, _by_port(self._tail_drops))
        for name, value in zip(_SCALARS, values[4 * PORTS :], strict=True):
            setattr(counts, name, value)
        return counts

    def length(self, port: int) -> int:
        """Return the number of packets queued for a port."""
        return sum(self._lengths[port * CLASSES : (port + 1) * CLASSES])


def _by_port(values: list[int]) -> Counter[int]:
    return Counter({port: count for port, count in enumerate(values) if count})


def _arrays(replicas: tuple[Replica, ...]) -> tuple[object, object, int]:
    ports = numbers(c_int32, [replica.port for replica in replicas])
    instances = numbers(c_uint32, [replica.instance for replica in replicas])
    return ports, instances, len(replicas)


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ahead:
    """The back end chosen for a program.

    Attributes:
        seconds: compilation time; near 0 for cached programs.
        reason: why AUTO chose Python, or None.
    """

    backend: Backend
    seconds: float
    reason: str | None = None


def compile_ahead(config: bytes, asked: Backend | None = None) -> Ahead:
    """Compile a program before switches are started, which then find it in the cache."""
    chosen = backend_here(asked)
    begin = time.monotonic()
    if chosen is Backend.PYTHON:
        return Ahead(Backend.PYTHON, 0.0)
    if chosen is Backend.AUTO and find_compiler() is None:
        return Ahead(Backend.PYTHON, 0.0, "There is no C++ compiler")
    given = GivenProgram(config)
    try:
        native_library(given)
    except (NoCompilerError, UnsupportedProgramError) as error:
        if chosen is Backend.NATIVE:
            raise
        given.check()
        _LOG.warning("The program runs as Python: %s", error)
        return Ahead(Backend.PYTHON, time.monotonic() - begin, str(error))
    return Ahead(Backend.NATIVE, time.monotonic() - begin)
