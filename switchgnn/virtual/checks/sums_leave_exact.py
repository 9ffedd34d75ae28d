# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Every sum that leaves for a worker is exact: a slot counts each source once (invariant 1).

A sum of another round, or a mixture, would be another number.
"""

import numpy as np

from switchgnn.host.wire.header import (
    BODY_AT,
    FRAGMENT_BYTES,
    HEADER,
    HEADER_AT,
    KIND_AT,
    KIND_MASK,
    LANES,
    SESSION_MASK,
    Kind,
    fragments_of,
)
from switchgnn.virtual.checks.check import SwitchCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

_NUMBER_BITS = 24


class SumsLeaveExact(SwitchCheck):
    """Compares all SUMs of this session on their way to workers."""

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        site = scene.subject.site
        self._ends = {
            (site.places[worker][0], site.port(worker)) for worker in range(len(scene.workers))
        }
        self._right: list[bytes] = []
        self._session = -1
        self._row_bytes = FRAGMENT_BYTES * fragments_of(scene.scenario.width)

    def session_begins(self) -> None:
        """Compute the right sums of the session's rounds, as they are on the wire."""
        job, oracle = self.scene.job, self.scene.subject.oracle
        if job is None:
            return
        self._session = job.session & SESSION_MASK
        self._right = []
        for features, _ in job.rounds:
            sums = self.scene.subject.awaited.of(oracle.fixed(features))
            padded = np.zeros((len(sums), self._row_bytes // FRAGMENT_BYTES * LANES), dtype=">i4")
            padded[:, : sums.shape[1]] = sums
            self._right.append(padded.tobytes())

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Compare sums among frames that leave.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        if (switch.number, port) not in self._ends:
            return
        for frame in frames:
            if frame[KIND_AT] & KIND_MASK == Kind.SUM and len(frame) >= BODY_AT + FRAGMENT_BYTES:
                self._compare(switch, frame)

    def _compare(self, switch: VirtualSwitch, frame: bytes) -> None:
        _, vertex, block, _, _, _, fragment, _, number, _ = HEADER.unpack_from(frame, HEADER_AT)
        session, place = number >> _NUMBER_BITS, number & ((1 << _NUMBER_BITS) - 1)
        if session != self._session or not 1 <= place <= len(self._right):
            return
        row = self.scene.subject.awaited.place.get((block, vertex), 0)
        at = row * self._row_bytes + fragment * FRAGMENT_BYTES
        right = self._right[place - 1][at : at + FRAGMENT_BYTES]
        if frame[BODY_AT : BODY_AT + FRAGMENT_BYTES] != right:
            self.scene.violated(
                "sums leave exact",
                f"switch {switch.name} sends a wrong sum of vertex {vertex}: round {place}, block "
                f"{block}, fragment {fragment}",
            )
