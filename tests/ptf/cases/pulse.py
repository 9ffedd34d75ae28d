# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""pulse.p4: who waits hears of signs of life of those that it waits for."""

from typing import Any

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind, Refusal
from tests.ptf.switchgnn_ptf.barrier_test import BarrierTest
from tests.ptf.switchgnn_ptf.leaf_spine_test import ABOVE, ELSEWHERE, LEAF, LeafTest
from tests.ptf.switchgnn_ptf.packets import (
    NETWORK,
    PLAN,
    STRANGER_PORT,
    barrier_answer,
    done,
    port_of,
    relayed,
    resigned,
    station,
)
from tests.ptf.switchgnn_ptf.switch_test import MEMBERS, SwitchTest

# What a broken or mad worker may say; a sound one sets its own bit or none.
ALL = 2**128 - 1


class PulseTest(BarrierTest):
    """Cases in which worker 0 waits for the others in block 1."""

    def setUp(self) -> None:
        super().setUp()
        self.open()
        self.collect(0, block=1)

    def expect_pulses(self, pulses: int, workers: int = 0b001) -> None:
        """Worker 0 asks, and is told these pulses; its own is 0."""
        self.ask(0, Kind.WAITING, workers=workers, answer={"pulses": pulses}, block=1)

    def busy(self, worker: int, pulse: int, **fields: Any) -> None:
        """Repeat the `done` of the last barrier, as a worker does that is busy with a block."""
        place = {"block": 0, **fields}
        self.ask(worker, Kind.ADVANCE, workers=MEMBERS, pulse=pulse << worker, **place)

    def rest(self) -> None:
        """Leave no pulse to the next case: there is no restart between them."""
        for worker in (1, 2):
            self.busy(worker, 0)
        self.expect_pulses(0)


class EachChangeIsSeen(PulseTest):
    """The latest pulse of each worker, however often it was said."""

    def runTest(self) -> None:
        self.expect_pulses(0)
        for worker, pulse, known in ((1, 1, 0b010), (2, 1, 0b110), (1, 0, 0b100), (1, 0, 0b100)):
            self.busy(worker, pulse)
            self.expect_pulses(known)
            self.expect_pulses(known)
        self.rest()


class WhoIsDoneSaysItToo(PulseTest):
    """Every `done` has a pulse: the first of a block, and those that are repeated."""

    def runTest(self) -> None:
        self.collect(1, block=1, pulse=0b010)
        self.expect_pulses(0b010, workers=0b011)
        own = {"answer": {"pulses": 0b011}, "pulse": 0b001}
        self.ask(0, Kind.WAITING, workers=0b011, block=1, **own)
        self.rest_of_the_block()

    def rest_of_the_block(self) -> None:
        self.ask(1, Kind.WAITING, workers=0b011, answer={"pulses": 0b001}, block=1)
        self.expect_pulses(0, workers=0b011)


class OnlyItsOwn(PulseTest):
    """A worker has its own pulse and no other's, whatever it says (invariant 6)."""

    def runTest(self) -> None:
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, pulse=ALL, block=0)
        self.expect_pulses(0b010)
        self.busy(2, 1)
        self.ask(1, Kind.ADVANCE, workers=MEMBERS, pulse=0, block=0)
        self.expect_pulses(0b100)
        self.rest()


class WhatIsRefusedIsNoSign(PulseTest):
    """Another port, plan, session, process or magnitude; and a refusal tells no pulses."""

    def runTest(self) -> None:
        with self.counted(Outcome.WRONG_PORT, 2):
            self.send(3, done(1, block=0, pulse=0b010))
            self.send(STRANGER_PORT, done(1, block=0, pulse=0b010, port=STRANGER_PORT))
        self.expect_pulses(0)
        with self.counted(Outcome.WRONG_PLAN):
            packet = self.report(1, block=0, plan=PLAN + 1, pulse=0b010)
            self.expect(2, barrier_answer(Kind.WAITING, packet, to=2, workers=0, round_=0))
        with self.counted(Outcome.WRONG_INCARNATION):
            packet = self.report(1, block=0, incarnation=7, pulse=0b010)
            refusal = Refusal.INCARNATION
            body = {"workers": 0, "round_": 0, "largest": 0, "refusal": refusal}
            self.expect(2, barrier_answer(Kind.WAITING, packet, to=2, **body))
        with self.counted(Outcome.WRONG_MAGNITUDE):
            packet = self.report(1, block=1, magnitude=9, pulse=0b010)
            self.expect_refusal(packet, Refusal.MAGNITUDE, largest=1)
        self.expect_pulses(0)


class LeafReportsThePulsesOfItsWorkers(LeafTest):
    """Also while one of them is busy: its last `done` goes up, and with it all pulses."""

    def runTest(self) -> None:
        with self.counted(Outcome.DONE_COLLECTED, 3):
            for worker in (0, 1, 2):
                asked = done(worker, block=0)
                self.send(port_of(worker), asked)
            self.expect(ABOVE, relayed(resigned(asked, Src_id=LEAF, Dst_id=0), to=ABOVE))
        for worker in (0, 1):
            with self.counted(Outcome.DONE_COLLECTED):
                asked = done(worker, block=1, pulse=1 << worker)
                self.send(port_of(worker), asked)
        known = {"workers": 0b011 | ELSEWHERE, "pulses": 0b011}
        with self.counted(Outcome.DONE_REPEATED):
            self.send(2, asked)
            self.expect(2, barrier_answer(Kind.WAITING, asked, to=2, **known))
        for pulse, pulses in ((0b100, 0b111), (0, 0b011)):
            busy = done(2, block=0, pulse=pulse)
            with self.counted(Outcome.DONE_REPEATED):
                self.send(3, busy)
                reported = resigned(busy, Src_id=LEAF, Dst_id=0)
                reported["Barrier"].workers = pulses
                self.expect(ABOVE, relayed(reported, to=ABOVE))
        with self.counted(Outcome.DONE_REPEATED, 2):
            for worker in (0, 1):
                rests = done(worker, block=0)
                self.send(port_of(worker), rests)
                reported = resigned(rests, Src_id=LEAF, Dst_id=0)
                reported["Barrier"].workers = 0b10 if worker == 0 else 0
                self.expect(ABOVE, relayed(reported, to=ABOVE))


class SpineKnowsThePulsesOfWorkers(SwitchTest):
    """A leaf brings those of all workers behind it, and of no others."""

    def runTest(self) -> None:
        self.entries.remove()
        for port in (1, 2, 3, 4):
            self.entries.add_station(mac=station(port).mac, port=port)
        for leaf in (0, 1):
            self.entries.add_leaf(port=leaf + 1, leaf=leaf, members=0b11 << 2 * leaf)
            self.entries.add_departure(port=leaf + 1, network=NETWORK)
        self.entries.add_group(1, [1, 2])
        self.entries.set_tier(leaves=1)
        self.session += 1
        self.entries.set_session(session=self.session, plan=PLAN, members=0b1111)
        waits = done(0, block=1)
        with self.counted(Outcome.DONE_COLLECTED):
            self.send(1, waits)
        for said, pulses in ((0b1000, 0b1000), (ALL, 0b1100), (0b0100, 0b0100), (0, 0)):
            busy = done(1, block=0, pulse=said)
            with self.counted(Outcome.DONE_REPEATED):
                self.send(2, busy)
                self.expect(2, barrier_answer(Kind.ADVANCE, busy, to=2, workers=0b1111))
            with self.counted(Outcome.DONE_REPEATED):
                self.send(1, waits)
                known = {"workers": 0b0011, "pulses": pulses}
                self.expect(1, barrier_answer(Kind.WAITING, waits, to=1, **known))
