"""The base classes of checks; each packet between workers and switches is read once for all."""

from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from switchgnn.host.wire import header as wire
from switchgnn.host.wire.narrow import unpack_lanes
from tests.simulation.network import units_of

# The word of a fragment has pool and width below its number.
_NUMBER_AT, _PLACE_BITS = 7, 0x7F


class Check:
    """Observes a scene while it happens; subclasses override the hooks that they need."""

    name = ""

    def tell(self, what):
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
        """Return whether a worker may have opened a round before packets were observed."""
        # Switches know a session a moment before workers begin, which a Byzantine one may guess.
        return unit.block == wire.OPENING_BLOCK and not self.scene.honest(worker)


class CheckedUnit(NamedTuple):
    """A unit of a round; in a pool the later one is greater."""

    round: int
    number: int
    block: int
    place: int  # pool and width, the lower bits of the fragment's word

    @classmethod
    def of(cls, round_number, block, word):
        return cls(round_number, word >> _NUMBER_AT, block, word & _PLACE_BITS)

    @property
    def word(self):
        return self.number << _NUMBER_AT | self.place

    @property
    def pool(self):
        return wire.pool_of(self.place)

    def __str__(self):
        return f"round {self.round}, block {self.block}, fragment {self.number}, pool {self.pool}"


class Packet(wire.Header):
    """A packet; `frame` holds it."""

    @classmethod
    def of(cls, frame):
        """Return the packet in a frame that is long enough for one, sound or not."""
        packet = cls._make(wire.parse_header(frame).header)
        packet.frame = frame
        return packet

    @cached_property
    def unit(self):
        return CheckedUnit.of(self.round, self.block_id, self.fragment)

    @property
    def body(self):
        return self.frame[wire.BODY_AT :]

    @property
    def is_sound(self):
        """Whether checksum and length are right; outer headers are not checked."""
        size = wire.body_bytes(self)
        if size is None or len(self.frame) < wire.BODY_AT + size:
            return False
        return wire.frame_checksum(self.frame, size) == wire.parse_header(self.frame).checksum


def kind_in(frame):
    return frame[wire.KIND_AT] & wire.KIND_MASK if len(frame) >= wire.BODY_AT else 0


def acknowledged(packet):
    """Return how many features of its group a packet acknowledges; None if it is no answer."""
    if packet.kind == wire.Kind.SUM:
        # Of a vertex cut.
        return packet.src_id if packet.is_ack else None
    return packet.count


class PacketReader(SwitchCheck):
    """Reads each packet once, and hands it to the checks of its kind."""

    def __init__(self, checks):
        self._checks = checks
        self._taking = {
            int(kind): [each for each in checks if kind in each.takes] for kind in wire.Kind
        }
        self._giving = {
            int(kind): [each for each in checks if kind in each.gives] for kind in wire.Kind
        }
        self._session = -1

    def begin(self, scene):
        super().begin(scene)
        self._workers = scene.worker_ports

    def session_begins(self):
        self._session = self.scene.job.session & wire.SESSION_MASK

    def taken(self, switch, port, frames):
        worker = self._workers.get((switch.number, port))
        for frame in () if worker is None else frames:
            if checks := self._taking.get(kind_in(frame)):
                packet = Packet.of(frame)
                own = packet.session == self._session
                checks = [each for each in checks if own or each.all_sessions]
                if checks and packet.is_sound:
                    for check in checks:
                        check.took(switch, worker, packet)

    def given(self, switch, port, frames):
        worker = self._workers.get((switch.number, port))
        for frame in () if worker is None else frames:
            if checks := self._giving.get(kind_in(frame)):
                packet = Packet.of(frame)
                # Packets with other outer headers are only forwarded.
                if packet.session == self._session and wire.is_plain(frame, wire.PROTOCOL):
                    for check in checks:
                        check.gave(switch, worker, packet)

    def ends(self, switch):
        for check in self._checks:
            check.ends(switch)


def planned_units(scene, direction):
    """Return block and word of each unit of a round in a direction, in order."""
    scenario, manifest = scene.scenario, scene.subject.plan.manifest
    words = wire.fragment_words(scenario.width, scenario.lanes)
    return units_of(manifest.direction(direction).block_numbers, words, scenario.pools)


class Fragments:
    """The fragments of a scene's rows on the wire."""

    def __init__(self, scene):
        words = wire.fragment_words(scene.scenario.width, scene.scenario.lanes)
        self._ends = list(accumulate(map(wire.lanes_of, words), initial=0))
        self._units = {
            unit for each in scene.subject.directions for unit in planned_units(scene, each)
        }

    def rows_of(self, values):
        """Return int64[n, F], integers of their exchange's scale, in whole fragments."""
        return np.pad(values.astype(np.int32), ((0, 0), (0, self._ends[-1] - values.shape[1])))

    def holds(self, packet, rows, row):
        """Return whether a feature or a sum has its fragment of one row of `rows_of`."""
        if (packet.block_id, packet.fragment) not in self._units:
            return False
        number, lanes = wire.fragment_number(packet.fragment), wire.lanes_of(packet.fragment)
        body = np.frombuffer(
            packet.body, np.uint8, wire.payload_bytes(packet.fragment, packet.bits)
        )
        found = unpack_lanes(body[np.newaxis], lanes, packet.bits)
        return np.array_equal(found[0], rows[row, self._ends[number] : self._ends[number + 1]])
