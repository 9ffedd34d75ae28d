# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ports with a bandwidth: what is charged, who waits, and who does not."""

import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.softswitch import QueueSettings, SoftSwitch, UdpSpec
from switchgnn.softswitch.replication import Replica
from switchgnn.softswitch.traffic_manager import TrafficManager
from tests.softswitch.harness import Rig, config_bytes
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

UNICAST, MULTICAST, TRUNCATE = 2, 3, 9
REPORT_BYTES = 22
BYTE_A_SECOND = QueueSettings(bandwidth=8.0)


def order(first=0, second=0, egress=0, argument=2, payload=b"x" * 72):
    return bytes([first, second, egress, 0]) + argument.to_bytes(2, "big") + payload


def queue_depth(frame):
    return int.from_bytes(frame[24:28], "big")


class Clock:
    """It stands still unless told otherwise."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    """The forwarder's clock."""
    return Clock()


def served(rig, clock, seconds):
    """Ports and sizes of what leaves after so many seconds more."""
    rig.sent.clear()
    clock.now += seconds
    rig.forwarder.drain()
    return [(port, len(frame)) for port, frame in rig.sent]


def test_a_frame_is_charged_with_the_length_it_leaves_with(clock):
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, clock=clock)
    assert len(rig.run(1, order())) == 1  # an idle line sends at once
    assert rig.run(1, order()) == []
    assert rig.queues.next_time() == 1000.0 + 78 + REPORT_BYTES
    assert served(rig, clock, 99.9) == []
    assert served(rig, clock, 0.1) == [(2, 100)]
    rig.run(1, order(TRUNCATE))
    rig.run(1, order())
    assert served(rig, clock, 100) == [(2, 8)]
    assert served(rig, clock, 7.9) == []
    assert served(rig, clock, 0.1) == [(2, 100)]


def test_a_packet_that_egress_drops_or_recirculates_costs_no_time(clock):
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, clock=clock)
    rig.run(1, order())
    for egress in (1, 4, 0):
        rig.run(1, order(egress=egress))
    assert served(rig, clock, 100) == [(2, 100)]
    assert (rig.counts.egress_drops, rig.counts.recirculated) == (1, 1)


def test_a_port_that_nothing_is_attached_to_is_not_limited(clock):
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, attached=[2], clock=clock)
    for _ in range(5):
        rig.run(1, order())
        rig.run(1, order(UNICAST, argument=300))
        rig.run(1, order(UNICAST, argument=300, egress=4))
    assert rig.counts.unattached == {300: 10}
    assert rig.counts.recirculated == 10
    assert rig.queues.length(2) == 4


def test_the_program_sees_the_queue_of_the_line(clock):
    rig = Rig(config_bytes("fates"), QueueSettings(depth=3, bandwidth=8.0), clock=clock)
    frames = [frame for _ in range(6) for _, frame in rig.run(1, order())]
    assert rig.queues.tail_drops == {2: 2}
    for _ in range(3):
        served(rig, clock, 100)
        frames += [frame for _, frame in rig.sent]
    assert [queue_depth(frame) for frame in frames] == [0, 0, 1, 2]


def test_ports_with_equal_lines_take_turns(clock):
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, clock=clock)
    rig.replication.groups[1] = tuple(Replica(port, 1) for port in (4, 4, 4, 5, 6, 6, 5, 5, 6))
    rig.run(1, order(MULTICAST))
    assert sorted(port for port, _ in rig.sent) == [4, 5, 6]
    # Even late, when several frames of each port are due, no port is served twice in a row.
    assert [port for port, _ in served(rig, clock, 200)] == [4, 5, 6, 4, 5, 6]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2000)), max_size=60))
def test_each_line_sends_its_packets_in_order_and_never_too_early(packets):
    queues = TrafficManager(QueueSettings(bandwidth=8.0), attached=range(3))
    for number, (port, size) in enumerate(packets):
        queues.push(port, (number, size), 0.0)
    left, free = [], [0.0] * 4
    while (due := queues.next_time()) is not None:
        if (item := queues.pop(due)) is None:
            continue  # the line was charged after its turn was given
        port, (number, size), _ = item
        assert due >= free[port]
        assert port < 3 or due == 0.0  # nothing is attached to it
        free[port] = max(due, free[port]) + (size if port < 3 else 0)
        queues.charge(port, size)
        left.append((port, number))
    for port in range(4):
        sent = [number for used, number in left if used == port]
        assert sent == [number for number, (used, _) in enumerate(packets) if used == port]


def test_with_two_limits_the_slower_one_counts():
    queues = TrafficManager(QueueSettings(rate=0.1, bandwidth=8.0), attached=[1])
    for size in (4, 40, 4):
        queues.push(1, (size,), 0.0)
    times = []
    for now in range(60):
        while (item := queues.pop(float(now))) is not None:
            queues.charge(1, item[1][0])
            times.append(now)
    assert times == [0, 10, 50]


def test_bandwidth_holds_in_a_running_switch_that_sleeps_meanwhile():
    bandwidth, packets = 1e6, 50
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as spare,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(seconds_here(5))
        spare.bind(("127.0.0.1", 0))
        local = spare.getsockname()
        spare.close()
        specs = {2: UdpSpec(local, receiver.getsockname())}
        queues = QueueSettings(bandwidth=bandwidth)
        with SoftSwitch(specs, grpc=None, queues=queues) as switch:
            switch.load(config_bytes("fates"))
            begin, used = time.monotonic(), time.process_time()
            for number in range(packets):
                switch.inject(1, order(payload=bytes([number]) * 966))
                switch.inject(1, order(UNICAST, argument=300))
            assert switch.counts.unattached[300] == packets  # at once
            got = [receiver.recv(2000) for _ in range(packets)]
            elapsed, used = time.monotonic() - begin, time.process_time() - used
    assert [frame[-1] for frame in got] == list(range(packets))
    assert elapsed >= (packets - 1) * len(got[0]) * 8 / bandwidth * 0.99
    assert used < elapsed / 2


def test_a_waiting_queue_needs_no_processor():
    with SoftSwitch({}, grpc=None, queues=QueueSettings(rate=1.0)) as switch:
        switch.load(config_bytes("fates"))
        for _ in range(2):
            switch.inject(1, order())
        used = time.process_time()
        wait_until(lambda: switch.counts.unattached[2] == 2, "the second packet")
        assert time.process_time() - used < 0.3


def test_whoever_calls_while_the_loop_looks_how_long_to_wait_is_not_forgotten():
    with SoftSwitch({}, grpc=None, queues=QueueSettings(rate=2000.0)) as switch:
        switch.load(config_bytes("fates"))
        for sent in range(2, 1002, 2):
            switch.inject(1, order())
            switch.inject(1, order())
            wait_until(lambda sent=sent: switch.counts.unattached[2] == sent, "both packets")
