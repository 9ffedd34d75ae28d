# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""outcome.p4: every frame has exactly one outcome."""

from scapy.layers.inet import UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.controller.controls.forward import BROADCAST
from switchgnn.host.wire.header import SESSION_MASK, Kind, Refusal
from tests.ptf.switchgnn_ptf.packets import (
    REDUCE_SLOTS,
    barrier_answer,
    contributors,
    done,
    feature,
    fetch,
    missing,
    notice,
    ordinary,
    random_lanes,
    recall,
    reduce_,
    reducing,
    relayed,
    relayed_fetch,
    resigned,
    station,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

LANES = random_lanes(1)


def refused(asked: Packet, refusal: Refusal) -> Packet:
    """Return the word to worker 0 that its DONE is not taken."""
    round_ = 1 if refusal in (Refusal.MAGNITUDE, Refusal.NEXT) else 0
    return barrier_answer(Kind.WAITING, asked, to=1, workers=0, round_=round_, refusal=refusal)


class EveryOutcomeOnce(SwitchTest):
    """One frame of each outcome, one after another; each counts in its own cell only."""

    def runTest(self) -> None:
        self.serve(magnitude_limit=8)
        self.entries.set_expected(3)
        self.add_sum(900, {101: 0, 102: 1}, worker=0)
        self.add_destination(901, worker=1, slot=8, expected=1)
        good = feature(101, LANES, port=1, round_=2)
        broken = resigned(good)
        broken["SwitchGNN"].Checksum = 1
        arp = Ether(src=station(1).mac, dst=BROADCAST) / ARP()
        udp = ordinary(1, station(2).mac, UDP())
        collected, wrong_plan = done(0, block=0), done(0, block=0, plan=1)
        recalled, fetched = recall(900, port=1, round_=2), fetch(102, 900, port=1, round_=2)
        resent, noticed = resigned(good, Resend=1, Dst_id=901), notice(0)
        passed_on = recall(902, port=1)
        wrong_incarnation = done(0, block=1, incarnation=9)
        wrong_magnitude = done(0, block=1, magnitude=9)
        for packet in (good, broken, collected, wrong_plan, recalled, fetched, resent, noticed):
            self.stamp(packet)
        wrong_next = done(0, block=0, following=(7, 0))
        contribution, late = reduce_(0, 2 * REDUCE_SLOTS, LANES), reduce_(0, REDUCE_SLOTS, LANES)
        asked = reducing(0, 2 * REDUCE_SLOTS, lanes=len(LANES))
        newest = {"to": 1, "newest": 2 * REDUCE_SLOTS}
        for packet in (passed_on, wrong_incarnation, wrong_magnitude, wrong_next):
            self.stamp(packet)
        for packet in (contribution, late, asked):
            self.stamp(packet)
        wrong_session = resigned(good, Session=(self.session + 1) & SESSION_MASK)
        self.entries.add_distant(block=1, vertex=902, port=1, above=2)
        frames = {
            Outcome.AGGREGATED: good,
            Outcome.DUPLICATE: good,
            Outcome.STALE: feature(101, LANES, port=1, round_=1),
            Outcome.WRONG_PORT: feature(102, LANES, port=1),
            Outcome.UNKNOWN_VERTEX: feature(109, LANES, port=1),
            Outcome.UNKNOWN_BLOCK: feature(101, LANES, port=1, block=9),
            Outcome.WRONG_COUNT: feature(101, LANES, port=1, count=2, round_=3),
            Outcome.DONE_COLLECTED: collected,
            Outcome.DONE_REPEATED: collected,
            Outcome.WRONG_PLAN: wrong_plan,
            Outcome.FORWARDED: udp,
            Outcome.FLOODED: arp,
            Outcome.UNKNOWN_STATION: ordinary(1, "02:00:00:00:99:99", UDP()),
            Outcome.MALFORMED: broken,
            Outcome.UNKNOWN_KIND: resigned(good, Kind=Kind.SUM),
            Outcome.RECALLED: recalled,
            Outcome.FETCHED: fetched,
            Outcome.RESENT: resent,
            Outcome.NOTICED: noticed,
            Outcome.PASSED_ON: passed_on,
            Outcome.WRONG_SESSION: wrong_session,
            Outcome.WRONG_INCARNATION: wrong_incarnation,
            Outcome.WRONG_MAGNITUDE: wrong_magnitude,
            Outcome.WRONG_TAG: feature(101, LANES, port=1),
            Outcome.WRONG_NEXT: wrong_next,
            Outcome.REDUCE_ADDED: contribution,
            Outcome.REDUCE_REPEATED: contribution,
            Outcome.REDUCE_STALE: late,
            Outcome.REDUCE_ASKED: asked,
        }
        self.assertEqual(list(Outcome), list(frames))
        answers = {
            Outcome.DONE_REPEATED: [(1, barrier_answer(Kind.WAITING, collected, to=1, workers=1))],
            Outcome.WRONG_PLAN: [(1, refused(wrong_plan, Refusal.NONE))],
            Outcome.WRONG_INCARNATION: [(1, refused(wrong_incarnation, Refusal.INCARNATION))],
            Outcome.WRONG_MAGNITUDE: [(1, refused(wrong_magnitude, Refusal.MAGNITUDE))],
            Outcome.WRONG_NEXT: [(1, refused(wrong_next, Refusal.NEXT))],
            Outcome.REDUCE_REPEATED: [(1, contributors(contribution, workers=1, **newest))],
            Outcome.REDUCE_STALE: [(1, contributors(late, workers=0, **newest))],
            Outcome.REDUCE_ASKED: [(1, contributors(asked, workers=1, **newest))],
            Outcome.FORWARDED: [(2, udp)],
            Outcome.FLOODED: [(2, arp)],
            Outcome.RECALLED: [(1, missing(recalled, count=1))],
            Outcome.FETCHED: [(2, relayed_fetch(fetched, to=2))],
            Outcome.RESENT: [(2, relayed(resent, to=2))],
            Outcome.PASSED_ON: [(2, relayed(passed_on, to=2))],
            Outcome.NOTICED: [(port, relayed(noticed, to=port)) for port in (1, 2, 3)],
        }
        for outcome, frame in frames.items():
            passes = {1: 1} if outcome is Outcome.AGGREGATED else {}
            released = {0: 1} if outcome is Outcome.FETCHED else {}
            if outcome is Outcome.WRONG_TAG:
                self.serve(magnitude_limit=8, any_tag=0)
            with self.counted(outcome, passes=passes, released=released):
                self.send(1, frame)
                for answer in answers.get(outcome, []):
                    self.expect(*answer)
                if outcome is Outcome.FLOODED:
                    self.expect(3, arp)
