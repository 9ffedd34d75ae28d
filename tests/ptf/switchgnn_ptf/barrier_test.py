# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Cases that report DONE."""

from typing import Any

from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind, Refusal
from tests.ptf.switchgnn_ptf.packets import (
    WORKERS,
    barrier_answer,
    done,
    port_of,
)
from tests.ptf.switchgnn_ptf.switch_test import MEMBERS, SwitchTest


class BarrierTest(SwitchTest):
    """Cases that report DONE."""

    def report(self, worker: int, **fields: Any) -> Packet:
        """Send a DONE from its worker and return it."""
        packet = done(worker, **fields)
        self.send(port_of(worker), packet)
        return packet

    def collect(self, *workers: int, **fields: Any) -> None:
        """Report DONE for workers other than the last, and expect no answer."""
        with self.counted(Outcome.DONE_COLLECTED, len(workers)):
            for worker in workers:
                self.report(worker, **fields)

    def complete(
        self,
        worker: int,
        *,
        magnitude: int = 0,
        round_: int = 1,
        largest: int = 0,
        **fields: Any,
    ) -> None:
        """Report DONE for the last worker; everybody must get ADVANCE, once."""
        with self.counted(Outcome.DONE_COLLECTED):
            packet = self.report(worker, magnitude=magnitude, round_=round_, **fields)
            self.expect_advance(packet, round_=round_, magnitude=magnitude, largest=largest)

    def expect_advance(self, last: Packet, **body: int) -> None:
        """Expect ADVANCE on every worker's port."""
        for worker in WORKERS:
            to = port_of(worker)
            answer = barrier_answer(Kind.ADVANCE, last, to=to, workers=MEMBERS, **body)
            self.expect(to, answer)

    def expect_refusal(
        self,
        packet: Packet,
        refusal: Refusal,
        *,
        magnitude: int = 0,
        largest: int,
        round_: int | None = 1,
    ) -> None:
        """Expect WAITING at worker 1 alone; a round of None is not known yet."""
        body = {"magnitude": magnitude, "round_": round_ or 0, "largest": largest}
        answer = barrier_answer(Kind.WAITING, packet, to=2, workers=0, refusal=refusal, **body)
        self.expect(2, answer)

    def ask(
        self, worker: int, kind: Kind, *, workers: int, answer: Any = None, **fields: Any
    ) -> None:
        """Repeat a DONE; its worker alone must get this answer."""
        with self.counted(Outcome.DONE_REPEATED):
            packet = self.report(worker, **fields)
            body = {"round_": fields.get("round_", 1), **(answer or {})}
            to = port_of(worker)
            self.expect(to, barrier_answer(kind, packet, to=to, workers=workers, **body))

    def open(self, **fields: Any) -> None:
        """Let all workers open a round."""
        self.collect(0, 1, block=0, **fields)
        self.complete(2, block=0, **fields)
