# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0

"""The base classes of checks; each packet between workers and switches is read once for all."""

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.header import OPENING_BLOCK, PROTOCOL, SESSION_MASK, Kind
from tests.simulation.network import (
    LANE_KINDS,
    bits_in,
    body_bytes,
    has_body_of,
    number_of,
    widened,
    words_of,
)
from tests.simulation.parts.reducer import Reduced
from tests.simulation.parts.switch import VirtualSwitch
from tests.simulation.parts.worker import Done
from tests.simulation.scene import Scene


class Check:
    """Observes a scene while it happens; subclasses override the hooks that they need."""

    scene: Scene

    def begin(self, scene: Scene) -> None:
        """Begin to observe a scene; nothing has happened yet."""
        self.scene = scene

    def session_begins(self) -> None:
        """Note that workers are about to begin."""

    def done(self, done: Done) -> None:
        """Note that a worker has done an exchange."""

    def reduced(self, reduced: Reduced) -> None:
        """Note that a worker has done an all-reduce."""

    def session_ends(self) -> None:
        """Note that all workers have ended."""

    def conclude(self, *, in_time: bool) -> None:
        """Note that nothing more happens."""


class SwitchCheck(Check):
    """Observes the frames that switches take and give, too."""

    def begin(self, scene: Scene) -> None:
        """Begin to observe a scene and its switches."""
        super().begin(scene)
        for switch in scene.switches:
            switch.observers.append(self)

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Note frames that arrive at a port."""

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Note frames that leave through a port."""

    def ends(self, switch: VirtualSwitch) -> None:
        """Note that a switch is about to end, or to load another program."""


_HEADER = struct.Struct(">IIHHBBHHII")
_AT = 34
_CHECKED = _AT + _HEADER.size - 4
_BODY = _AT + _HEADER.size
_KIND_AT = _AT + 12
_OFFSET, _PROTOCOL_AT = slice(20, 22), 23
# EtherType of IPv4, and the first byte of a header without options.
_ENVELOPE, _PLAIN_IPV4 = slice(12, 15), b"\x08\x00\x45"
# More fragments, and the offset.
_FRAGMENT_BITS = 0x3FFF
_FETCHED, _RESENT, _ROUND = 0x40, 0x10, 0xFFFFFF
# In the byte after the flags: version, bits of numbers, level and this bit.
_ECHO = 0x01


class CheckedPacket(NamedTuple):
    """The fields of a packet, with Count as ``number``; see docs/protocol.md.

    Attributes:
        frame: the frame that holds it.
        fragment: the word of its number and its width.
        place: round, block and fragment.
        resent: whether it is a raw feature for one destination.
    """

    source: int
    destination: int
    block: int
    number: int
    flags: int
    extension: int
    fragment: int
    group: int
    session_and_round: int
    checksum: int
    frame: bytes
    place: tuple[int, int, int]
    resent: bool

    @property
    def envelope(self) -> bytes:
        """The bytes before the header."""
        return envelope_of(self.frame)

    @property
    def on_request(self) -> bool:
        """Whether it answers a RECALL or a FETCH."""
        return bool(self.flags & _FETCHED)

    @property
    def echo(self) -> bool:
        """Whether a FEATURE asks for an ACK, or a DONE announces early features."""
        return bool(self.extension & _ECHO)

    @property
    def bits(self) -> int:
        """The bits of a number in the body."""
        return bits_in(self.extension)

    @property
    def level(self) -> int:
        """How many switches have made a partial sum of it."""
        return self.extension >> 1 & 1

    @property
    def body(self) -> bytes:
        """The bytes after the header."""
        return self.frame[_BODY:]


def envelope_of(frame: bytes) -> bytes:
    """Return the bytes before the header of a frame."""
    return frame[:_AT]


def kind_in(frame: bytes) -> int:
    """Return the kind of packet in a frame, unchecked."""
    return frame[_KIND_AT] & 0xF if len(frame) >= _BODY else 0


def read_packet(frame: bytes) -> CheckedPacket:
    """Return the packet in a frame that is long enough for one."""
    fields = _HEADER.unpack_from(frame, _AT)
    _, _, block, _, flags, _, fragment, _, number, _ = fields
    place = number & _ROUND, block, fragment
    return CheckedPacket._make((*fields, frame, place, bool(flags & _RESENT)))


def is_wrapped(packet: CheckedPacket) -> bool:
    """Return whether the outer headers are those of a packet to a host."""
    frame = packet.frame
    return (
        frame[_ENVELOPE] == _PLAIN_IPV4
        and frame[_PROTOCOL_AT] == PROTOCOL
        and not int.from_bytes(frame[_OFFSET], "big") & _FRAGMENT_BITS
    )


def is_sound(packet: CheckedPacket) -> bool:
    """Return whether checksum and length are right; outer headers are not checked."""
    frame = packet.frame
    kind = packet.flags & 0xF
    end = _BODY + body_bytes(kind, packet.fragment, packet.bits)
    if kind in LANE_KINDS and not has_body_of(kind, packet.fragment, packet.bits):
        return False
    checked = zlib.crc32(frame[_BODY:end], zlib.crc32(frame[_AT:_CHECKED]))
    return len(frame) >= end and checked == packet.checksum


def name_of(place: tuple[int, int, int]) -> str:
    """Return round, block and fragment as words."""
    return f"round {place[0]}, block {place[1]}, fragment {number_of(place[2])}"


class Fragments:
    """The fragments of rows on the wire.

    Args:
        width: columns of the rows.
        lanes: of the widest frame.

    Attributes:
        words: of all fragments of a row.
    """

    def __init__(self, width: int, lanes: int) -> None:
        self.words = words_of(width, lanes)
        sizes = [body_bytes(LANE_KINDS[0], word) for word in self.words]
        ends = list(accumulate(sizes, initial=0))
        self._row_bytes = ends[-1]
        self._places = dict(zip(self.words, pairwise(ends), strict=True))

    def rows_of(self, values: NDArray[np.int64]) -> bytes:
        """Return rows as they are on the wire, one after the other, each of whole fragments.

        Args:
            values: int64[n, F], integers of the scale of their exchange.

        Returns:
            n times the bytes of the fragments of F elements.
        """
        rows, width = values.shape
        padded = np.zeros((rows, self._row_bytes // 4), dtype=">i4")
        padded[:, :width] = values
        return padded.tobytes()

    def holds(self, packet: CheckedPacket, rows: bytes, row: int) -> bool:
        """Return whether a packet has its fragment of a row.

        Args:
            packet: a feature or a sum.
            rows: of `rows_of`.
            row: which of them.
        """
        if packet.fragment not in self._places:
            return False
        begin, end = (row * self._row_bytes + at for at in self._places[packet.fragment])
        body = widened(packet.body, packet.fragment, packet.bits)
        return body[: end - begin] == rows[begin:end]


_SESSION_SHIFT = 24


class PacketCheck(Check):
    """Observes packets of this session between workers and switches, by their kinds.

    Attributes:
        takes, gives: kinds on their way to and from a switch.
        takes_of_others: kinds of packets of other sessions.
    """

    takes: frozenset[Kind] = frozenset()
    gives: frozenset[Kind] = frozenset()
    takes_of_others: frozenset[Kind] = frozenset()

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        """Note a sound packet that comes from a worker."""

    def took_of_another_session(
        self, switch: VirtualSwitch, worker: int, packet: CheckedPacket
    ) -> None:
        """Note a sound packet of another session that comes from a worker."""

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        """Note a packet that leaves for a worker."""

    def ends(self, switch: VirtualSwitch) -> None:
        """Note that a switch is about to forget all."""

    def opened_unheard(self, worker: int, place: tuple[int, int, int]) -> bool:
        """Return whether a worker may have opened a round before packets were observed.

        Switches know a session a moment before workers begin, and a Byzantine worker may guess it.
        """
        return place[1] == OPENING_BLOCK and not self.scene.honest(worker)


# Hooks of checks by the kinds of packets.
Looks = dict[int, list[Callable[[VirtualSwitch, int, CheckedPacket], None]]]


@dataclass(frozen=True)
class _Reading:
    """The hooks for packets of one direction, and which packets count."""

    this_session: Looks
    other_sessions: Looks
    heeded: Callable[[CheckedPacket], bool]


class PacketReader(SwitchCheck):
    """Reads each packet once, and hands it to the checks of its kind."""

    def __init__(self, checks: Sequence[PacketCheck]) -> None:
        self._checks = checks
        taken: Looks = {int(kind): [c.took for c in checks if kind in c.takes] for kind in Kind}
        of_others: Looks = {
            int(kind): [c.took_of_another_session for c in checks if kind in c.takes_of_others]
            for kind in Kind
        }
        given: Looks = {int(kind): [c.gave for c in checks if kind in c.gives] for kind in Kind}
        self._taken = _Reading(taken, of_others, is_sound)
        # Packets with other outer headers are only forwarded.
        self._given = _Reading(given, {}, is_wrapped)
        self._session = -1

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._ends = scene.worker_ports

    def session_begins(self) -> None:
        if self.scene.job is not None:
            self._session = self.scene.job.session & SESSION_MASK

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        worker = self._ends.get((switch.number, port))
        if worker is not None:
            self._read(self._taken, switch, worker, frames)

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        worker = self._ends.get((switch.number, port))
        if worker is not None:
            self._read(self._given, switch, worker, frames)

    def _read(
        self, reading: _Reading, switch: VirtualSwitch, worker: int, frames: list[bytes]
    ) -> None:
        """Hand packets to the checks of their kinds, mostly only those of this session."""
        for frame in frames:
            kind = kind_in(frame)
            if looking := reading.this_session.get(kind):
                packet = read_packet(frame)
                if packet.session_and_round >> _SESSION_SHIFT != self._session:
                    looking = reading.other_sessions.get(kind, [])
                if looking and reading.heeded(packet):
                    for look in looking:
                        look(switch, worker, packet)

    def ends(self, switch: VirtualSwitch) -> None:
        for check in self._checks:
            check.ends(switch)
