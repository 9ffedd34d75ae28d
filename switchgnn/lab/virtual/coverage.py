# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: D102 - hooks are documented in `Check` and `PacketCheck`
"""Names of the states that hosts and program pass in a run."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields

from switchgnn.controller.controls.outcome import Outcome
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import Kind
from switchgnn.lab.virtual.checks.check import (
    CheckedPacket,
    SwitchCheck,
    is_sound,
    kind_in,
    read_packet,
)
from switchgnn.lab.virtual.parts.switch import VirtualSwitch
from switchgnn.lab.virtual.parts.worker import VirtualWorker
from switchgnn.lab.virtual.scene import Scene

_LAST = 8


def bucket_of(number: int) -> str:
    """Return the power-of-two range of a number; empty for 0."""
    bits = min(number.bit_length(), _LAST)
    if bits < 2:
        return str(number) if number else ""
    least = 1 << bits - 1
    return f"{least}+" if bits == _LAST else f"{least}-{2 * least - 1}"


_BLOCK, _COUNT, _FRAGMENT = slice(42, 44), slice(44, 46), slice(48, 50)
_ROUND = slice(52, 56)
# The number of a group in a frame, and the lowest one of interest.
GROUP = slice(50, 52)
MANY = (8).to_bytes(2, "big")


class GroupsApart:
    """Compares the groups that workers send with the first one that is not acknowledged."""

    def __init__(self, window: int) -> None:
        self._whole = Pace(window).group_size.to_bytes(2, "big")
        self._places: dict[int, bytes] = {}
        self._acknowledged: dict[int, set[bytes]] = {}
        self._furthest: dict[int, int] = {}

    @property
    def furthest(self) -> Iterator[int]:
        """The largest distance of each worker that had many groups."""
        return iter(self._furthest.values())

    def sent(self, worker: int, frame: bytes) -> None:
        """Note a feature of a group from ``MANY``."""
        whole: set[bytes] = set()
        if self._places.get(worker) == _place(frame):
            whole = self._acknowledged[worker]
        group = int.from_bytes(frame[GROUP], "big")
        first = next(n for n in range(group + 1) if n == group or n.to_bytes(2, "big") not in whole)
        self._furthest[worker] = max(group - first, self._furthest.get(worker, 0))

    def acknowledged(self, worker: int, frame: bytes) -> None:
        """Note an acknowledgement."""
        place = _place(frame)
        if place != self._places.get(worker):
            self._places[worker], self._acknowledged[worker] = place, set()
        if frame[_COUNT] == self._whole:
            self._acknowledged[worker].add(frame[GROUP])


def _place(frame: bytes) -> bytes:
    return frame[_ROUND] + frame[_BLOCK] + frame[_FRAGMENT]


_FLAGS_AT, _NUMBER_AT, _END = slice(46, 47), slice(52, 56), 60
_FLAGS = {0x80: "A", 0x40: "F", 0x20: "E", 0x10: "R"}
_RELEASED = 0xFFFF


class PacketsSeen:
    """Notes the kinds and flags of packets at one place."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._now = b""
        self._known: set[bytes] = set()
        self.states: set[str] = set()

    def note(self, frames: list[bytes], now: bytes) -> None:
        """Note frames."""
        known = self._known
        if now != self._now:
            self._now = now
            known.clear()
        for frame in frames:
            key = frame[_FLAGS_AT] + frame[_NUMBER_AT]
            if key not in known:
                known.add(key)
                self._look(frame)

    def _look(self, frame: bytes) -> None:
        """Note a frame that is new in this round, unless it is corrupt."""
        if len(frame) < _END or (frame[46] & 0xF) not in _KINDS:
            return
        packet = read_packet(frame)
        if is_sound(packet):
            kind = Kind(packet.flags & 0xF).name
            flags = "".join(letter for bit, letter in _FLAGS.items() if packet.flags & bit)
            self.states.add(f"{self._where} {kind}{flags and '.'}{flags}{self._age(frame)}")

    def _age(self, frame: bytes) -> str:
        number, now = frame[_NUMBER_AT], self._now
        if number == now:
            return ""
        if number[0] != now[0]:
            return " of another session"
        return " of a later round" if number > now else " of an earlier round"


_KINDS = frozenset(Kind)


def answer_in(frame: bytes) -> str:
    """Return the state in a MISSING (of a slot) or a WAITING (of a worker)."""
    packet: CheckedPacket = read_packet(frame)
    if kind_in(frame) == Kind.WAITING:
        return f"refused {packet.number}" if packet.number else "waiting"
    if packet.number in (0, _RELEASED):
        return "a slot is released" if packet.number else "a slot is empty"
    return f"a slot grows {bucket_of(packet.number)}"


_OUTCOME, _EVENTS = ".outcome", ".events"
# As plain numbers: each frame is compared with them.
_KIND_AT, _SHORTEST = 46, 60
_FEATURE, _ACK, _ADVANCE = int(Kind.FEATURE), int(Kind.ACK), int(Kind.ADVANCE)
_ANSWERS = frozenset(map(int, (Kind.MISSING, Kind.WAITING)))
_SLOT_EVENTS = ("completed", "stale", "overfull", "released")


class States(SwitchCheck):
    """Collects the states of a run in `met`; it observes as a check does, but never fails."""

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self.met: set[str] = set()
        self._known = 0
        self._now = bytes(4)
        self._ends = scene.worker_ports
        self._taken, self._below = PacketsSeen("taken"), PacketsSeen("taken from a switch")
        self._given, self._above = PacketsSeen("given"), PacketsSeen("given to a switch")
        self._heard = PacketsSeen("heard")
        self._apart = GroupsApart(scene.scenario.window)
        for worker in scene.workers:
            worker.onlookers.append(self)

    def session_begins(self) -> None:
        job = self.scene.job
        if job is not None:
            self._now = bytes((job.session & 0xFF, 0, 0, 0))

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        worker = self._ends.get((switch.number, port))
        if worker is None:
            self._below.note(frames, self._now)
            return
        self._taken.note(frames, self._now)
        for frame in frames:
            # Shorter frames have no group.
            if frame[GROUP] >= MANY and frame[_KIND_AT] & 0xF == _FEATURE:
                self._apart.sent(worker, frame)

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        worker = self._ends.get((switch.number, port))
        if worker is None:
            self._above.note(frames, self._now)
            return
        self._given.note(frames, self._now)
        for frame in frames:
            kind = frame[_KIND_AT] & 0xF if len(frame) >= _SHORTEST else 0
            if kind == _ACK:
                self._apart.acknowledged(worker, frame)
            elif kind == _ADVANCE:
                self._go_on(frame)
            elif kind in _ANSWERS:
                self.met.add(answer_in(frame))

    def heard(self, _worker: VirtualWorker, frames: list[bytes]) -> None:
        # Frames of this round were noted where they were given.
        for frame in frames:
            if frame[52:56] != self._now:
                self._heard.note([frame], self._now)

    def _go_on(self, frame: bytes) -> None:
        """Note an open round."""
        number = frame[52:56]
        if number[0] == self._now[0]:
            self._now = max(self._now, number)

    def ends(self, switch: VirtualSwitch) -> None:
        engine = switch.engine
        if engine is None:
            return
        events = [0] * len(_SLOT_EVENTS)
        for name, counter in engine.state.counters.items():
            if name.endswith(_OUTCOME):
                for outcome, number in zip(Outcome, counter.packets, strict=False):
                    self._meet(f"outcome {outcome.name}", number)
            elif name.endswith(_EVENTS):
                cells = counter.packets[: len(events)]
                events = [one + more for one, more in zip(events, cells, strict=True)]
        for event, number in zip(_SLOT_EVENTS, events, strict=True):
            self._meet(f"slot {event}", number)

    def session_ends(self) -> None:
        for worker in self.scene.workers:
            for task in worker.tasks:
                if task.error is not None:
                    self._meet(type(task.error).__name__, 1)
            if worker.exchange is not None:
                counters = worker.exchange.counters
                for each in fields(counters):
                    self._meet(each.name, getattr(counters, each.name))
            if worker.reducer is not None and worker.reducer.stream is not None:
                for name, number in asdict(worker.reducer.stream.counters).items():
                    self._meet(f"all-reduces {name}", number)
        self._known = len(self.scene.happened)

    def conclude(self, *, in_time: bool) -> None:
        for switch in self.scene.switches:
            self.ends(switch)
        for seen in (self._taken, self._below, self._given, self._above, self._heard):
            self.met |= seen.states
        self.met.update(f"groups apart {bucket_of(n)}" for n in self._apart.furthest)

    def _meet(self, what: str, number: int) -> None:
        """Note a state, how often it occurred, and the incidents of the session."""
        if number:
            self.met.add(f"{what} {bucket_of(number)}")
            self.met.update(f"{what} and {incident}" for incident in self._incidents())

    def _incidents(self) -> Iterator[str]:
        """Yield the kinds and places of this session's incidents."""
        for _, incident in self.scene.happened[self._known :]:
            where = "controller" if incident.where == "controller" else incident.where[0]
            yield f"{incident.kind.value} {where}"


@dataclass
class Coverage:
    """The number of scenarios, and how many of them have met each state."""

    scenarios: int = 0
    met: Counter[str] = field(default_factory=Counter)

    def add(self, states: Iterable[str]) -> None:
        """Add the states of one scenario, each once."""
        self.scenarios += 1
        self.met.update(states)
