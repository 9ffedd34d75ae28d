"""The base classes of checks; each packet between workers and switches is read once for all."""

import struct
import zlib
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from switchgnn.host.wire.header import OPENING_BLOCK, PROTOCOL, SESSION_MASK, Kind
from tests.simulation.network import (
    LANE_KINDS,
    bits_in,
    body_bytes,
    has_body_of,
    number_of,
    pool_of,
    units_of,
    widened,
    words_of,
)


class Check:
    """Observes a scene while it happens; subclasses override the hooks that they need."""

    name = ""

    def tell(self, what):
        """Record that the invariant of this name is violated."""
        self.scene.violated(self.name, what)

    def begin(self, scene):
        """Begin to observe a scene; nothing has happened yet."""
        self.scene = scene

    def session_begins(self):
        """Note that workers are about to begin."""

    def done(self, done):
        """Note that a worker has done an exchange (`Done`)."""

    def reduced(self, reduced):
        """Note that a worker has done an all-reduce (`Reduced`)."""

    def session_ends(self):
        """Note that all workers have ended."""

    def conclude(self, *, in_time):
        """Note that nothing more happens."""


class SwitchCheck(Check):
    """Observes the frames that switches take and give, too."""

    def begin(self, scene):
        super().begin(scene)
        for switch in scene.switches:
            switch.onlookers.append(self)

    def taken(self, switch, port, frames):
        """Note frames that arrive at a port."""

    def given(self, switch, port, frames):
        """Note frames that leave through a port."""

    def ends(self, switch):
        """Note that a switch is about to end, or to load another program."""


class PacketCheck(Check):
    """Observes packets between workers and switches, by their kinds."""

    takes = gives = frozenset()  # kinds on their way to and from a switch
    all_sessions = False  # whether also those of other sessions count

    def took(self, switch, worker, packet):
        """Note a sound packet that comes from a worker."""

    def gave(self, switch, worker, packet):
        """Note a packet that leaves for a worker."""

    def ends(self, switch):
        """Note that a switch is about to forget all."""

    def opened_unheard(self, worker, unit):
        """Return whether a worker may have opened a round before packets were observed.

        Switches know a session a moment before workers begin, and a Byzantine worker may guess it.
        """
        return unit.block == OPENING_BLOCK and not self.scene.honest(worker)


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
_SESSION_SHIFT, _ROUND = 24, 0xFFFFFF
_FETCHED, _RESENT = 0x40, 0x10
# In the byte after the flags: version, bits of numbers, level and this bit.
_ECHO = 0x01


_NUMBER_AT, _PLACE_BITS = 7, 0x7F
_ROUND_AT, _FRAGMENT_AT, _BLOCK_AT = 32, 23, 7


class CheckedUnit(NamedTuple):
    """A unit of a round; in a pool the later one is greater.

    `place`: pool and width, the lower bits of the fragment's word.
    """

    round: int
    number: int
    block: int
    place: int

    @classmethod
    def of(cls, round_number, block, word):
        return cls(round_number, word >> _NUMBER_AT, block, word & _PLACE_BITS)

    @property
    def word(self):
        return self.number << _NUMBER_AT | self.place

    @property
    def pool(self):
        return pool_of(self.place)

    @property
    def tag(self):
        """The tag without the session."""
        of_round = self.number << _FRAGMENT_AT | self.block << _BLOCK_AT | self.place
        return self.round << _ROUND_AT | of_round

    def __str__(self):
        return f"round {self.round}, block {self.block}, fragment {self.number}, pool {self.pool}"


class CheckedPacket(NamedTuple):
    """The fields of a packet, with Count as ``number``; see docs/protocol.md."""

    source: int
    destination: int
    block: int
    number: int
    flags: int
    extension: int
    fragment: int  # the word of its number, pool and width
    group: int
    session_and_round: int
    checksum: int
    frame: bytes  # the frame that holds it
    unit: CheckedUnit
    resent: bool  # whether it is a raw feature for one destination

    @property
    def kind(self):
        return self.flags & 0xF

    @property
    def session(self):
        return self.session_and_round >> _SESSION_SHIFT

    @property
    def envelope(self):
        return envelope_of(self.frame)

    @property
    def on_request(self):
        """Whether it answers a RECALL or a FETCH."""
        return bool(self.flags & _FETCHED)

    @property
    def echo(self):
        """Whether a FEATURE asks for an ACK, or a DONE announces early features."""
        return bool(self.extension & _ECHO)

    @property
    def bits(self):
        """The bits of a number in the body."""
        return bits_in(self.extension)

    @property
    def level(self):
        return self.extension >> 1 & 1

    @property
    def body(self):
        return self.frame[_BODY:]

    @property
    def is_wrapped(self):
        """Whether the outer headers are those of a packet to a host."""
        frame = self.frame
        return (
            frame[_ENVELOPE] == _PLAIN_IPV4
            and frame[_PROTOCOL_AT] == PROTOCOL
            and not int.from_bytes(frame[_OFFSET], "big") & _FRAGMENT_BITS
        )

    @property
    def is_sound(self):
        """Whether checksum and length are right; outer headers are not checked."""
        frame, kind = self.frame, self.kind
        end = _BODY + body_bytes(kind, self.fragment, self.bits)
        if kind in LANE_KINDS and not has_body_of(kind, self.fragment, self.bits):
            return False
        checked = zlib.crc32(frame[_BODY:end], zlib.crc32(frame[_AT:_CHECKED]))
        return len(frame) >= end and checked == self.checksum


def envelope_of(frame):
    """Return the bytes before the header of a frame."""
    return frame[:_AT]


def kind_in(frame):
    """Return the kind of packet in a frame, unchecked."""
    return frame[_KIND_AT] & 0xF if len(frame) >= _BODY else 0


def read_packet(frame):
    """Return the packet in a frame that is long enough for one."""
    fields = _HEADER.unpack_from(frame, _AT)
    _, _, block, _, flags, _, fragment, _, number, _ = fields
    unit = CheckedUnit.of(number & _ROUND, block, fragment)
    return CheckedPacket._make((*fields, frame, unit, bool(flags & _RESENT)))


class PacketReader(SwitchCheck):
    """Reads each packet once, and hands it to the checks of its kind."""

    def __init__(self, checks):
        self._checks = checks
        self._taking = {int(kind): [each for each in checks if kind in each.takes] for kind in Kind}
        self._giving = {int(kind): [each for each in checks if kind in each.gives] for kind in Kind}
        self._session = -1

    def begin(self, scene):
        super().begin(scene)
        self._workers = scene.worker_ports

    def session_begins(self):
        self._session = self.scene.job.session & SESSION_MASK

    def taken(self, switch, port, frames):
        worker = self._workers.get((switch.number, port))
        for frame in () if worker is None else frames:
            if checks := self._taking.get(kind_in(frame)):
                packet = read_packet(frame)
                own = packet.session == self._session
                checks = [each for each in checks if own or each.all_sessions]
                if checks and packet.is_sound:
                    for check in checks:
                        check.took(switch, worker, packet)

    def given(self, switch, port, frames):
        worker = self._workers.get((switch.number, port))
        for frame in () if worker is None else frames:
            if checks := self._giving.get(kind_in(frame)):
                packet = read_packet(frame)
                # Packets with other outer headers are only forwarded.
                if packet.session == self._session and packet.is_wrapped:
                    for check in checks:
                        check.gave(switch, worker, packet)

    def ends(self, switch):
        for check in self._checks:
            check.ends(switch)


def planned_units(scene, direction):
    """Return block and word of each unit of a round in a direction, in order."""
    scenario, manifest = scene.scenario, scene.subject.plan.manifest
    words = words_of(scenario.width, scenario.lanes)
    return units_of(manifest.direction(direction).block_numbers, words, scenario.pools)


class Fragments:
    """The fragments of a scene's rows on the wire."""

    def __init__(self, scene):
        words = words_of(scene.scenario.width, scene.scenario.lanes)
        ends = list(accumulate((body_bytes(LANE_KINDS[0], word) for word in words), initial=0))
        self._row_bytes = ends[-1]
        offsets = list(pairwise(ends))
        self._offsets = {
            (block, word): offsets[number_of(word)]
            for direction in scene.subject.directions
            for block, word in planned_units(scene, direction)
        }

    def rows_of(self, values):
        """Return rows as they are on the wire, one after the other, each of whole fragments.

        `values`: int64[n, F], integers of the scale of their exchange.
        """
        rows, width = values.shape
        padded = np.zeros((rows, self._row_bytes // 4), dtype=">i4")
        padded[:, :width] = values
        return padded.tobytes()

    def holds(self, packet, rows, row):
        """Return whether a feature or a sum has its fragment of one row of `rows_of`."""
        unit = packet.block, packet.fragment
        if unit not in self._offsets:
            return False
        begin, end = (row * self._row_bytes + at for at in self._offsets[unit])
        body = widened(packet.body, packet.fragment, packet.bits)
        return body[: end - begin] == rows[begin:end]
