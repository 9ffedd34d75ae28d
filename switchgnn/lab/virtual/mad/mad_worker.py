# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that has gone mad: for a time its line takes what it likes, beside its own frames."""

from collections import deque
from collections.abc import Iterable
from random import Random

from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import (
    BODY_AT,
    ETHERNET_BYTES,
    KIND_AT,
    KIND_MASK,
    LAST_ROUND,
    VERSION,
    Header,
    Kind,
)
from switchgnn.lab.virtual.mad.generator import ON_A_WIRE, Facts, Generator, facts_of
from switchgnn.lab.virtual.network import Wire, body_bytes, read_field, seal, write_header
from switchgnn.lab.virtual.parts.switch import VirtualSwitch
from switchgnn.lab.virtual.scenario.scenario import Scenario
from switchgnn.lab.virtual.subject import Subject
from switchgnn.lab.virtual.timing import SECOND, Scheduler
from switchgnn.lab.virtual.trace import Trace

# What it does not send more of, each time it goes mad: a frame costs as much as a sound one.
_MOST_FRAMES = 300
_VOLLEY = 6
# Between two volleys, in magnitudes: from nanoseconds of less than a way to this share of the time.
_SHORTEST_GAP, _LONGEST_GAP = 5_000, 0.1
# Of each kind of packet this many of the last ones are remembered.
_REMEMBERED = 8
# How often it draws a frame about the plan, changes one that has passed, or says that it is done
# with what is to come; otherwise raw bytes.
_ABOUT_THE_PLAN, _OF_THOSE_THAT_PASSED, _AHEAD = 0.4, 0.4, 0.15
_SESSION_SHIFT = 24
_MAC_BYTES, _WITH_ADDRESSES = 12, 0.5


class MadWorker:
    """Sends what it likes over the line of a worker; an onlooker of its switch.

    Attributes:
        began: whether it has gone mad yet.
    """

    def __init__(
        self,
        number: int,
        generator: Generator,
        up: Wire,
        port: int,
        *,
        scheduler: Scheduler,
        trace: Trace,
    ) -> None:
        self.began = False
        self._name = f"w{number}"
        self._generator = generator
        self._random: Random = generator.random
        self._up = up
        self._port = port
        self._scheduler = scheduler
        self._trace = trace
        self._passed: dict[int, deque[bytes]] = {}
        self._own: deque[bytes] = deque(maxlen=_MOST_FRAMES)
        self._until = 0
        self._left = 0
        self._raves = False
        self._gaps = (0.0, 0.0)

    def rave(self, seconds: float) -> None:
        """Send what it likes for that long, or until it has sent enough."""
        self.began = True
        self._until = max(self._until, self._scheduler.now + int(seconds * SECOND))
        self._left = _MOST_FRAMES
        self._gaps = _SHORTEST_GAP / SECOND, max(_SHORTEST_GAP / SECOND, _LONGEST_GAP * seconds)
        if not self._raves:
            self._raves = True
            self._fire()

    def calm(self) -> None:
        """Send nothing of its own any more."""
        self._until = self._left = 0

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Remember what the worker's process has sent."""
        if port == self._port:
            self._remember(frame for frame in frames if frame not in self._own)

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Remember what has come for it."""
        if port == self._port:
            self._remember(frames)

    def _remember(self, frames: Iterable[bytes]) -> None:
        for frame in frames:
            kind = frame[KIND_AT] & KIND_MASK if len(frame) >= BODY_AT else -1
            self._passed.setdefault(kind, deque(maxlen=_REMEMBERED)).append(frame)

    def ends(self, switch: VirtualSwitch) -> None:
        """Remember what has passed, whatever the switch forgets."""

    def _fire(self) -> None:
        if self._scheduler.now > self._until or self._left <= 0:
            self._raves = False
            return
        number = self._random.randint(1, min(_VOLLEY, self._left))
        self._left -= number
        self._trace.note(self._name, f"is mad, and sends {number} frames")
        frames = [self._frame() for _ in range(number)]
        self._own.extend(frames)
        self._up.send(frames)
        least, most = self._gaps
        gap = int(SECOND * least * (most / least) ** self._random.random())
        self._scheduler.after(gap, self._fire)

    def _frame(self) -> bytes:
        sort = self._random.random()
        if sort < _ABOUT_THE_PLAN:
            return self._generator.shot().aim(*self._present())
        if sort < _ABOUT_THE_PLAN + _OF_THOSE_THAT_PASSED and self._passed:
            frames = self._passed[self._random.choice(list(self._passed))]
            return self._generator.changed(self._random.choice(frames))
        done = self._passed.get(Kind.DONE)
        if sort < _ABOUT_THE_PLAN + _OF_THOSE_THAT_PASSED + _AHEAD and done:
            return self._generator.ahead(done[-1])
        raw = self._random.randbytes(int(ON_A_WIRE ** self._random.random()))
        with_addresses = self._passed and self._random.random() < _WITH_ADDRESSES
        return next(iter(self._passed.values()))[-1][:_MAC_BYTES] + raw if with_addresses else raw

    def _present(self) -> tuple[int, int]:
        """Return session and round of the last barrier that has passed."""
        for kind in (Kind.ADVANCE, Kind.DONE):
            if kind in self._passed:
                number = read_field(self._passed[kind][-1], "round")
                return number >> _SESSION_SHIFT, number & LAST_ROUND
        return 1, 1


_KINDS = range(16)
_NOBODY = "02:00:00:00:77:77"
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_PLAN_AT = 4
# The word of the first fragment of 32 numbers.
_BANK_WIDTH = 2
# What follows the addresses of frames that are none of SwitchGNN's: types, and what they hold.
_ARP, _IPV6, _LLDP = b"\x08\x06", b"\x86\xdd", b"\x88\xcc"
_VLAN, _LLC, _EXPERIMENT = b"\x81\0\0\x07", b"\0\x04\xaa\xaa\x03x", b"\x88\xb5"
_UDP = 17


def generator_for(scenario: Scenario, subject: Subject, worker: int, random: Random) -> Generator:
    """Return what draws frames of a worker."""
    site = subject.site
    spines = [share.plan.switch for share in subject.shares[scenario.leaves or 1 :]]
    facts = facts_of(subject.plan, scenario.width, spines)
    addresses = site.addresses(worker)
    templates = {kind: _template(kind, addresses, facts) for kind in _KINDS}
    macs = [site.station(other).mac for other in range(scenario.workers)]
    macs += [addresses.switch.mac, _NOBODY, _BROADCAST]
    ordinary = [
        _mac_bytes(mac) + _mac_bytes(addresses.worker.mac) + rest
        for mac in macs
        for rest in _rests(templates)
    ]
    return Generator(facts, random, templates=templates, ordinary=ordinary)


def _template(kind: int, addresses: Addresses, facts: Facts) -> bytes:
    """Return a frame of a kind, sound but for its numbers; kinds that do not exist are empty."""
    body = bytearray(body_bytes(kind, _BANK_WIDTH))
    if kind in (Kind.DONE, Kind.ADVANCE, Kind.WAITING):
        body[_PLAN_AT : _PLAN_AT + 4] = facts.plan_id.to_bytes(4, "big")
    header = Header(Kind.FEATURE, fragment=_BANK_WIDTH)
    frame = bytearray(addresses.frame(header.pack(bytes(body))))
    write_header(frame, flags_kind=kind, version_level_echo=VERSION << 4)
    seal(frame)
    return bytes(frame)


def _rests(templates: dict[int, bytes]) -> list[bytes]:
    """Return what follows the addresses in frames that the switch takes for ordinary ones."""
    packet = templates[Kind.SUM][ETHERNET_BYTES:]
    other = bytearray(packet)
    other[9] = _UDP
    return [
        _ARP + bytes(28),
        _IPV6 + bytes(40),
        _LLDP + bytes(40),
        _EXPERIMENT + packet,
        _VLAN + _ARP + bytes(28),
        _VLAN + b"\x08\0" + packet,
        _LLC,
        b"\x08\0" + bytes(other),
        b"\x08\0" + bytes([0x46]) + packet[1:20] + b"\x01\0\0\0" + packet[20:],
    ]


def _mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
