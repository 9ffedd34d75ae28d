# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Who is slow is waited for, who is silent is not."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from switchgnn.host.innetwork.barrier import NEXT_ROUND, Barrier
from switchgnn.host.innetwork.endpoint import new_endpoint
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.innetwork.refusals import Pulse, SignsOfLife
from switchgnn.host.innetwork.responder import Inbox
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import BarrierBody, Header, Kind
from switchgnn.planner.graphs.load import load_graph
from tests.host.addresses import ADDRESSES, SESSION
from tests.host.innetwork.test_exchange import Team, check_rounds, plan_of
from tests.support.hand_clock import HandClock
from tests.support.slow_sums import SlowSums

PACE = Pace(patience=20.0)
BRIEF = Pace(window=4, patience=0.5)


class SlowTeam(Team):
    """The sums of worker 0 come slowly."""

    def _link(self, worker, faults):
        link = super()._link(worker, faults)
        return SlowSums(link, 50) if worker == 0 else link


@pytest.fixture(scope="module")
def graph():
    return load_graph("random:200:600:1")


@pytest.mark.whole
def test_a_block_may_take_longer_than_the_patience(graph):
    """The others wait in the barrier; the slow one gets on, a little at a time."""
    shares = []
    team = SlowTeam(plan_of(graph, 3, slots=512), pace=BRIEF, on_share=shares.append)
    began = time.monotonic()
    check_rounds(team, graph, 4, rounds=1)
    assert time.monotonic() - began > 2 * BRIEF.patience
    assert all(0 <= share <= 1 for share in shares)
    assert len({round(share, 2) for share in shares}) > 4


class TestSigns:
    """Of three workers 0 asks."""

    def test_a_pulse_that_changes_is_a_sign(self):
        signs = SignsOfLife(3)
        for now, pulses in ((0, 0b100), (9, 0b000), (18, 0b100), (27, 0b100)):
            signs.take(0b001, pulses, float(now))
        assert signs.silent(20.0, 27.0) == [1]
        assert signs.silent(20.0, 38.5) == [1, 2]

    def test_silence_begins_with_the_first_answer(self):
        signs = SignsOfLife(3)
        assert not signs.awaited
        signs.take(0b001, 0, 100.0)
        assert signs.awaited
        assert signs.silent(20.0, 119.0) == []
        assert signs.silent(20.0, 121.0) == [1, 2]

    def test_who_is_done_is_not_awaited(self):
        signs = SignsOfLife(3)
        signs.take(0b001, 0, 0.0)
        signs.take(0b101, 0, 30.0)
        assert signs.silent(20.0, 30.0) == [1]
        # A switch that was restarted has forgotten who was done.
        signs.take(0b001, 0, 31.0)
        assert signs.silent(20.0, 31.0) == [1]
        signs.take(0b111, 0, 32.0)
        assert not signs.awaited


@pytest.mark.parametrize("speaks", [0.001, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("asks", [0.03, 0.5, 1.0])
def test_who_asks_once_per_beat_sees_each_change(speaks, asks):
    """In beats; in whatever step the two are, a change is seen every few of them."""
    for phase in (0.0, 0.37, 0.999):
        pulse, signs, said = Pulse(1.0), SignsOfLife(2), 0.0
        latest = pulse.bit(said)
        for question in range(1, int(100 / asks)):
            now = question * asks + phase
            while said + speaks <= now:
                said += speaks
                latest = pulse.bit(said)
            signs.take(0b01, latest << 1, now)
            assert not signs.silent(6.0, now), (phase, now)


def waiting(pulses, *, block, seconds, pace=PACE):
    """Wait in a barrier where worker 1 is not done for so long; return the time that passed.

    The clock moves on only while the worker waits.

    Args:
        pulses: what the switch says at a time.
    """
    clock = HandClock(1000.0)
    link, asked = SimpleNamespace(name="model:0"), []
    link.send = lambda frame: asked.append(bytes(frame))

    def receive(longest):
        if not asked:
            clock.seconds += longest + 1e-9
            return None
        asked.clear()
        clock.seconds += 0.001
        passed = clock.seconds - 1000.0
        over = passed > seconds
        body = BarrierBody(
            plan=5, round=1, workers=0b11 if over else 0b01, pulses=None if over else pulses(passed)
        )
        kind = Kind.ADVANCE if over else Kind.WAITING
        header = Header(kind=kind, session=SESSION, round=1, block_id=block, fragment=0)
        return memoryview(ADDRESSES.frame(header.pack(body.pack())))

    link.receive = receive
    endpoint = new_endpoint(0, SESSION, link, ADDRESSES, pace, clock=clock)
    barrier = Barrier(endpoint, Inbox(endpoint, None, None), workers=2, plan_id=5)
    try:
        if block:
            barrier.close_block((1, block, 0), NEXT_ROUND)
        else:
            barrier.open_round(1, 0, NEXT_ROUND)
    finally:
        passed = clock.seconds - 1000.0
    return passed


@pytest.mark.parametrize("block", [0, 1])
def test_who_is_alive_is_waited_for(block):
    """Ten times the patience, with a sign of life that comes once in its half."""
    passed = waiting(lambda now: int(now / 10) % 2 << 1, block=block, seconds=200.0)
    assert 200.0 < passed < 202.0


@pytest.mark.parametrize(("block", "skew", "longest"), [(0, 0, 20), (0, 50, 70), (1, 50, 20)])
def test_who_is_silent_is_given_up(block, skew, longest):
    """From the last sign on; who may be computing has longer."""
    began = []

    def pulses(now):
        began.append(now)
        return (now > 5.0) << 1

    with pytest.raises(ExchangeTimeoutError, match=f"waited {longest} s, .* for worker 1[.]"):
        waiting(pulses, block=block, seconds=900.0, pace=replace(PACE, skew=float(skew)))
    assert longest + 4.0 < began[-1] < longest + 7.0
