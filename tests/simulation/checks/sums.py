# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0

"""Every sum that leaves for a worker is exact: a slot counts each source once (invariant 1).

A sum of another round, or a mixture, would be another number.
"""

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.header import Kind
from tests.simulation.checks.check import (
    CheckedPacket,
    Fragments,
    PacketCheck,
    kind_in,
    name_of,
)
from tests.simulation.checks.features import Scaled, ScaledCheck
from tests.simulation.checks.sent import SentRows, sent_in_session
from tests.simulation.parts.switch import VirtualSwitch
from tests.simulation.parts.worker import ExchangeJob
from tests.simulation.scene import Scene


class SumsLeaveExact(ScaledCheck):
    """Compares all SUMs of this session on their way to workers."""

    gives = frozenset({Kind.SUM, Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._right: dict[int | Scaled, bytes] = {}
        self._sent: SentRows | None = None
        self._fragments = Fragments(scene.scenario.width, scene.scenario.lanes)

    def session_begins(self) -> None:
        self._right.clear()
        super().session_begins()
        self._sent = sent_in_session(self.scene, self._scales)

    def _of(self, job: ExchangeJob, place: int, scaled: Scaled) -> bytes:
        """Return the right sums of a round, as they are on the wire."""
        key: int | Scaled = place if self._sent is not None else scaled
        if key not in self._right:
            self._right[key] = self._fragments.rows_of(self._sums(job, place, scaled))
        return self._right[key]

    def _sums(self, job: ExchangeJob, place: int, scaled: Scaled) -> NDArray[np.int64]:
        subject = self.scene.subject
        if self._sent is not None:
            return self._sent.frames.sums_of(self._sent.changes[place])
        features, bits = job.rounds[scaled.exchange][0], job.compression.bits
        return subject.awaited.of(subject.oracle.fixed(features, scaled.magnitude, bits))

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if self.heeded(packet):
            return
        scaled, job = self._scales.of(packet.place[0]), self.scene.job
        if scaled is None or job is None:
            return
        vertex = packet.destination
        row = self.scene.subject.awaited.place.get((packet.block, vertex), 0)
        right = self._fragments.holds(packet, self._of(job, packet.place[0], scaled), row)
        if not right and not self._spoilt(vertex):
            self.scene.violated(
                "sums leave exact",
                f"switch {switch.name} sends a wrong sum of vertex {vertex}: "
                f"{name_of(packet.place)}",
            )

    def _spoilt(self, vertex: int) -> bool:
        """Return whether a Byzantine worker may have changed a sum, by features or scale."""
        return vertex in self.scene.spoilt or self.scene.lawless


Sum = tuple[tuple[int, int, int], int]


class FetchedSumsStay(PacketCheck):
    """Remembers fetches, and looks for later sums of slots that should be released.

    Only at a star's switch that finishes each packet at once, packets leave in the order of their
    causes.
    """

    takes = frozenset({Kind.FETCH})
    gives = frozenset({Kind.FETCH, Kind.SUM})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        scenario = scene.scenario
        self._orderly = not (scenario.leaves or scenario.turns or scenario.queue_rate)
        self._asked: set[Sum] = set()
        self._fetched: set[Sum] = set()

    def session_begins(self) -> None:
        self._asked.clear()
        self._fetched.clear()

    def ends(self, switch: VirtualSwitch) -> None:
        self.session_begins()

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        # Whether the switch believes a Byzantine worker's fetch is unknown.
        if self._orderly and self.scene.honest(worker):
            self._asked.add((packet.place, packet.destination))

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        """Note a fetch that the switch passes on, and compare a SUM with those before.

        What it refuses, as one that was restarted may, it has forgotten by the next packet.
        """
        which = packet.place, packet.destination
        if kind_in(packet.frame) == Kind.FETCH:
            self._fetched |= self._asked & {which}
        # A recalled one may have been asked for just before.
        elif not packet.on_request and which in self._fetched:
            self.scene.violated(
                "fetched sums stay",
                f"the sum of vertex {packet.destination} in round {packet.place[0]}, block "
                f"{packet.block} leaves for worker {worker}, which has fetched its features",
            )


class ResentRight(ScaledCheck):
    """Compares the raw features for workers with those of the round."""

    gives = frozenset({Kind.FEATURE, Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._rows: dict[int | Scaled, bytes] = {}
        self._sent: SentRows | None = None
        part = scene.subject.plan.switch
        self._owner = dict(
            zip(part.source_vertex.tolist(), part.source_worker.tolist(), strict=True)
        )
        self._fragments = Fragments(scene.scenario.width, scene.scenario.lanes)

    def session_begins(self) -> None:
        self._rows.clear()
        super().session_begins()
        self._sent = sent_in_session(self.scene, self._scales)

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if self.heeded(packet):
            return
        if not packet.resent:
            return
        place, source = packet.place, packet.source
        right = self._is_right(packet)
        assignment = self.scene.subject.plan.assignment
        owner = assignment[packet.destination] if packet.destination < len(assignment) else None
        # A Byzantine worker lies about its features; where it moves a barrier on, the scale of the
        # others is unknown.
        believed = source in self._owner and not self.scene.honest(self._owner[source])
        wrong = not (right or believed or self.scene.lawless)
        if owner != worker or wrong:
            what = "wrong" if owner == worker else "for another worker"
            self.scene.violated(
                "resent right",
                f"the feature of vertex {source} in {name_of(place)} that leaves for worker "
                f"{worker} is {what}",
            )

    def _is_right(self, packet: CheckedPacket) -> bool:
        """Return whether a raw feature is that of its vertex, or the change that stands for it.

        The first vertex of a partial sum has the change of the whole.
        """
        place, source = packet.place[0], packet.source
        if self._sent is None:
            return self._fragments.holds(packet, self._of(place), source)
        frame = self._sent.frames.of(packet.block, source, packet.destination)
        if frame is None or place not in self._sent.changes:
            return False
        if place not in self._rows:
            changes = self._sent.changes[place]
            # After all frames there is one of zeros.
            padded = np.vstack([changes, np.zeros_like(changes[:1])])
            self._rows[place] = self._fragments.rows_of(padded)
        first = self._sent.frames.first[frame] == source
        return self._fragments.holds(
            packet, self._rows[place], frame if first else len(self._sent.frames.block)
        )

    def _of(self, place: int) -> bytes:
        job, scaled = self.scene.job, self._scales.of(place)
        if job is None or scaled is None:
            return b""
        if scaled not in self._rows:
            features, _ = job.rounds[scaled.exchange]
            bits = job.compression.bits
            fixed = self.scene.subject.oracle.fixed(features, scaled.magnitude, bits)
            self._rows[scaled] = self._fragments.rows_of(fixed)
        return self._rows[scaled]


class SumsLeaveOnce(PacketCheck):
    """Compares the SUMs for workers with the plan, and with those before."""

    gives = frozenset({Kind.SUM})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._expected: dict[tuple[int, int], tuple[int, int]] = {}
        for part in scene.subject.plan.workers:
            rows = zip(part.receive_vertex.tolist(), part.receive_count.tolist(), strict=True)
            ends = part.receive_indptr.tolist()
            block = 1
            for row, (vertex, count) in enumerate(rows):
                while row >= ends[block]:
                    block += 1
                self._expected[block, vertex] = part.worker, count
        # A leaf passes on frames from above as often as the cable brings them.
        self._once = not scene.scenario.leaves
        self._left: set[tuple[tuple[int, int, int], int]] = set()

    def session_begins(self) -> None:
        self._left.clear()

    def ends(self, switch: VirtualSwitch) -> None:
        self._left.clear()

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        vertex, place = packet.destination, packet.place
        owner, count = self._expected.get((packet.block, vertex), (None, 0))
        if owner != worker:
            self._tell(packet, f"for worker {worker}")
        elif packet.number != count:
            self._tell(packet, f"with {packet.number} of {count} contributions")
        elif self._once and not packet.on_request:
            # A Byzantine worker may recall its sums such that the answers do not look like some.
            if (place, vertex) in self._left and self.scene.honest(worker):
                self._tell(packet, "again unasked")
            self._left.add((place, vertex))

    def _tell(self, packet: CheckedPacket, how: str) -> None:
        self.scene.violated(
            "sums leave once",
            f"the sum of vertex {packet.destination} in round {packet.place[0]}, block "
            f"{packet.block} leaves {how}",
        )
