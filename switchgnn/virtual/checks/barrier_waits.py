# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Nobody is told to go on before all workers are done (invariant 5)."""

from switchgnn.host.wire.addresses import ipv4_envelope
from switchgnn.host.wire.header import (
    HEADER_AT,
    KIND_AT,
    KIND_MASK,
    OPENING_BLOCK,
    SESSION_MASK,
    Kind,
    unpack_header,
)
from switchgnn.station import Station
from switchgnn.virtual.checks.check import SwitchCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

Place = tuple[int, int, int]
_NOBODY = Station("00:00:00:00:00:00", "0.0.0.0")  # noqa: S104
_ENVELOPE = ipv4_envelope(_NOBODY, _NOBODY, 0)


class BarrierWaits(SwitchCheck):
    """Compares each ADVANCE for a worker with the `done`s that have reached switches."""

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        site = scene.subject.site
        self._ends = {
            (site.places[worker][0], site.port(worker)): worker
            for worker in range(len(scene.workers))
        }
        self._latest: dict[int, Place] = {}
        self._session = -1

    def session_begins(self) -> None:
        """Forget what workers of the last session have said."""
        job = self.scene.job
        self._latest = {}
        self._session = job.session & SESSION_MASK if job else -1

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Remember how far workers say that they are.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        worker = self._ends.get((switch.number, port))
        if worker is None:
            return
        for frame in frames:
            if frame[KIND_AT] & KIND_MASK == Kind.DONE:
                # Switches look at less of an envelope than hosts do.
                header = unpack_header(_ENVELOPE + frame[HEADER_AT:])
                if header and header.session == self._session and header.src_id == worker:
                    place = header.round, header.block_id, header.fragment
                    self._latest[worker] = max(place, self._latest.get(worker, place))

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Compare each ADVANCE among frames that leave.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        if (switch.number, port) not in self._ends:
            return
        for frame in frames:
            if frame[KIND_AT] & KIND_MASK != Kind.ADVANCE:
                continue
            header = unpack_header(frame)
            if header is None or header.session != self._session:
                continue
            place = header.round, header.block_id, header.fragment
            late = [
                worker.number
                for worker in self.scene.workers
                if self._latest.get(worker.number, (0, OPENING_BLOCK, 0)) < place
            ]
            if late:
                self.scene.violated(
                    "barrier waits",
                    f"switch {switch.name} says that all are done with round {place[0]}, block "
                    f"{place[1]}, fragment {place[2]}, but workers {late} are not",
                )
