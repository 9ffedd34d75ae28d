# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0

"""No worker goes on before all workers are done (invariant 5)."""

from dataclasses import dataclass

from switchgnn.host.wire.header import KIND_MASK, OPENING_BLOCK, Kind
from tests.simulation.checks.check import (
    CheckedPacket,
    PacketCheck,
    envelope_of,
    kind_in,
    name_of,
)
from tests.simulation.checks.features import ScaledCheck
from tests.simulation.network import words_of
from tests.simulation.parts.switch import VirtualSwitch
from tests.simulation.parts.worker import Done
from tests.simulation.scene import Scene
from tests.simulation.timing import SECOND

Place = tuple[int, int, int]


class BarrierWaits(PacketCheck):
    """Compares each ADVANCE for a worker with the `done`s that have reached switches."""

    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._words = words_of(scene.scenario.width, scene.scenario.lanes)
        self._blocks = scene.subject.plan.manifest.blocks

    def session_begins(self) -> None:
        workers = range(len(self.scene.workers))
        self._latest: dict[int, Place] = dict.fromkeys(workers, (0, OPENING_BLOCK, 0))

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if packet.source == worker:
            self._latest[worker] = max(packet.place, self._latest[worker])

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        place = packet.place
        late = [
            other
            for other, latest in self._latest.items()
            if latest < place and not self.opened_unheard(other, place)
        ]
        if late and not self._means_nothing(worker, place):
            self.scene.violated(
                "barrier waits",
                f"switch {switch.name} reports that all are done with {name_of(place)}, but "
                f"workers {late} are not",
            )

    def _means_nothing(self, worker: int, place: Place) -> bool:
        """Return whether a Byzantine worker may have caused an ADVANCE for a place.

        A place that is earlier and never had a turn is confirmed to it, and by its leaf to others.
        """
        if not self.scene.misfits:
            return False
        never = place[2] not in (self._words if place[1] else (0,)) or place[1] > self._blocks
        return never or self.scene.lawless or not self.scene.honest(worker)


Where = tuple[int, tuple[int, int, int]]


class DoneIsDone(ScaledCheck):
    """Compares each `done` with the acknowledgements before, group by group."""

    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.ACK, Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._features = [
            [0, *(part.send_indptr[1:] - part.send_indptr[:-1]).tolist()]
            for part in scene.subject.plan.workers
        ]
        self._acknowledged: dict[Where, dict[int, int]] = {}

    def session_begins(self) -> None:
        self._acknowledged.clear()
        super().session_begins()

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if self.heeded(packet):
            return
        groups = self._acknowledged.setdefault((worker, packet.place), {})
        groups[packet.group] = max(packet.number, groups.get(packet.group, 0))

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if packet.source != worker or packet.block >= len(self._features[worker]):
            return
        scaled = self._scales.of(packet.place[0])
        if not self.scene.honest(worker) or (scaled is not None and scaled.void):
            return
        features = self._features[worker][packet.block]
        groups = self._acknowledged.get((worker, packet.place), {})
        if sum(groups.values()) < features:
            self.scene.violated(
                "done is done",
                f"worker {worker} is done with {name_of(packet.place)}: {sum(groups.values())} of "
                f"its {features} features are acknowledged",
            )


_WORKERS = slice(12, 28)
# Late copies are fewer `done`s than that: more come from a live worker.
_PACKETS, _HEARTBEATS = 15, 15
# After a silence of that many beats it may be another process.
_SILENT = 5


@dataclass
class _Pulse:
    """The last pulse of a worker: its first and last time in nanoseconds, and how often it came."""

    bit: int
    since: int
    last: int
    packets: int = 1


class PulsesBeat(PacketCheck):
    """Looks for a worker whose pulse stays the same for long."""

    takes = frozenset({Kind.DONE})

    def session_begins(self) -> None:
        self._pulses: dict[int, _Pulse] = {}

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        task = self.scene.workers[worker].task
        if not self.scene.honest(worker) or task is None or task.stands_still:
            # Frames of a worker that has ended or stands still are the network's copies.
            self._pulses.pop(worker, None)
            return
        job, now = self.scene.job, self.scene.scheduler.now
        if job is None:
            return
        interval = int(job.pace.heartbeat_interval * SECOND)
        bit = int.from_bytes(packet.body[_WORKERS], "big") >> worker & 1
        pulse = self._pulses.get(worker)
        if pulse is None or pulse.bit != bit or now - pulse.last > _SILENT * interval:
            self._pulses[worker] = _Pulse(bit, now, now)
            return
        pulse.packets += 1
        pulse.last = now
        seconds = (now - pulse.since) / SECOND
        if pulse.packets > _PACKETS and now - pulse.since > _HEARTBEATS * interval:
            self.scene.violated(
                "pulses beat",
                f"worker {worker} has sent the same pulse {pulse.packets} times in {seconds:g} s",
            )


_DONE_BYTES = 54
_WAITING_WORKERS, _PULSES = slice(12, 28), slice(28, 44)


class PulsesPassedOn(PacketCheck):
    """Compares the pulses in each WAITING of a star's switch with those in the `done`s before."""

    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.WAITING, Kind.ADVANCE, Kind.ACK})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        # A leaf passes on what it has heard from above, and a queue delays it.
        self._looks = not (scene.scenario.leaves or scene.scenario.queue_rate)
        # Whether the switch has answered in this session since it was started.
        self._answers = False
        self._last: dict[int, bool] = {}
        self._incarnations: dict[int, set[int]] = {}
        site = scene.subject.site
        self._envelopes = [
            envelope_of(site.addresses(worker.number).frame(bytes(_DONE_BYTES)))
            for worker in scene.workers
        ]

    def session_begins(self) -> None:
        self._answers = False
        self._last.clear()
        self._incarnations.clear()

    def ends(self, switch: VirtualSwitch) -> None:
        self._answers = False
        self._last.clear()

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        self._incarnations.setdefault(worker, set()).add(packet.destination)
        if not self._answers:
            return
        if packet.envelope != self._envelopes[worker]:
            # Whether the switch takes frames with corrupt outer headers is not checked.
            self._last.pop(worker, None)
        elif packet.source == worker:
            pulses = int.from_bytes(packet.body[_WAITING_WORKERS], "big")
            self._last[worker] = bool(pulses >> worker & 1)

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        self._answers = True
        if not self._looks or kind_in(packet.frame) != Kind.WAITING or self.scene.lawless:
            return
        if not any(packet.body[_WAITING_WORKERS]):
            # A refusal, as the asking worker is done: no pulse is taken from a refused packet.
            if packet.number:
                self._last.pop(worker, None)
            return
        pulses = int.from_bytes(packet.body[_PULSES], "big")
        for other, pulse in self._last.items():
            # Of two processes of the same worker the switch refuses one.
            alone = len(self._incarnations[other]) == 1
            if not alone or other == worker or not self.scene.honest(other):
                continue
            if bool(pulses >> other & 1) is not pulse:
                self.scene.violated(
                    "pulses passed on",
                    f"{switch.name} passes another pulse of worker {other} on to worker {worker} "
                    "than it has heard",
                )


class WorkersWait(PacketCheck):
    """Compares features and `done`s of each worker with the `done`s of the others."""

    takes = frozenset({Kind.FEATURE, Kind.DONE})

    def session_begins(self) -> None:
        self._latest: dict[int, Place] = dict.fromkeys(range(len(self.scene.workers)), (0, 0, 0))
        # By worker: the place of early features, and the `done` that has announced them.
        self._early: dict[int, tuple[Place, Place]] = {}

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if packet.place <= self._latest[worker] or packet.resent:
            return
        place, before = packet.place, self._before(worker, packet)
        late = [
            other
            for other, latest in self._latest.items()
            if latest < before and not self.opened_unheard(other, before)
        ]
        if late and self.scene.honest(worker) and not self.scene.lawless:
            self.scene.violated(
                "workers wait",
                f"worker {worker} is in {name_of(place)}, "
                f"but workers {late} are not done with the place before",
            )
        if packet.flags & KIND_MASK == Kind.DONE:
            self._latest[worker] = place
            if packet.echo:
                self._early[worker] = (place[0] + 1, packet.number, packet.group), place

    def _before(self, worker: int, packet: CheckedPacket) -> Place:
        """Return the place that all must be done with before a worker sends a packet."""
        before = self._latest[worker]
        early, announced = self._early.get(worker, (None, before))
        opening = packet.place[0], OPENING_BLOCK, 0
        if packet.flags & KIND_MASK == Kind.FEATURE and packet.place == early and before == opening:
            return announced
        return before


# A worker and a round.
Turn = tuple[int, int]


class OneProcess(PacketCheck):
    """Compares the process that has opened a round with the one that gets its sums.

    The sums of another process may be right, as it may have the features of the first one.
    """

    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.ADVANCE})

    def session_begins(self) -> None:
        self._opened_by: dict[Turn, set[int]] = {}
        self._known: dict[Turn, int] = {}

    def ends(self, switch: VirtualSwitch) -> None:
        if self.scene.job is None:
            return
        places = self.scene.subject.site.places
        for known in (self._opened_by, self._known):
            for where in [each for each in known if places[each[0]][0] == switch.number]:
                del known[where]

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if packet.block == OPENING_BLOCK and packet.source == worker:
            where = worker, packet.place[0]
            self._opened_by.setdefault(where, set()).add(packet.destination)

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        where = worker, packet.place[0]
        said = self._opened_by.get(where, ())
        if packet.block == OPENING_BLOCK and len(said) == 1:
            (self._known[where],) = said

    def done(self, done: Done) -> None:
        if not self.scene.honest(done.worker) or self.scene.lawless:
            return
        own = self.scene.workers[done.worker].incarnation
        if self._known.get((done.worker, done.opened), own) != own:
            self.scene.violated(
                "one process",
                f"another process of worker {done.worker} has the sums of round {done.round}, "
                "which the one before it had opened together with all others",
            )
