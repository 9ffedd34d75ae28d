# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The pulse of a worker that speaks changes every two beats."""

from dataclasses import dataclass

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet
from switchgnn.virtual.checks.packets.packet_check import PacketCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.timing.scheduler import SECOND

_WORKERS = slice(12, 28)
# Copies that are late are fewer `done`s than that: who says them is alive.
_PACKETS, _BEATS = 15, 15
# Behind a silence of that many beats it may be another process.
_SILENT = 5


@dataclass
class _Pulse:
    """The last pulse of a worker, since when it is so, when it was said last, and how often."""

    bit: int
    since: int
    last: int
    packets: int = 1


class PulsesBeat(PacketCheck):
    """Looks for a worker that says the same pulse for long."""

    takes = frozenset({Kind.DONE})

    def session_begins(self) -> None:
        """Forget the pulses of the last session."""
        self._pulses: dict[int, _Pulse] = {}

    def took(self, switch: VirtualSwitch, worker: int, packet: Packet) -> None:
        """Compare a pulse with those before.

        Args:
            switch: where.
            worker: whose port it comes through.
            packet: it.
        """
        task = self.scene.workers[worker].task
        if not self.scene.honest(worker) or task is None or task.stands_still:
            # What still comes of one that has ended or stands still are the network's copies.
            self._pulses.pop(worker, None)
            return
        job, now = self.scene.job, self.scene.scheduler.now
        if job is None:
            return
        beat = int(job.pace.beat * SECOND)
        bit = int.from_bytes(packet.body[_WORKERS], "big") >> worker & 1
        pulse = self._pulses.get(worker)
        if pulse is None or pulse.bit != bit or now - pulse.last > _SILENT * beat:
            self._pulses[worker] = _Pulse(bit, now, now)
            return
        pulse.packets += 1
        pulse.last = now
        seconds = (now - pulse.since) / SECOND
        if pulse.packets > _PACKETS and now - pulse.since > _BEATS * beat:
            self.scene.violated(
                "pulses beat",
                f"worker {worker} has said the same pulse {pulse.packets} times in {seconds:g} s",
            )
