# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The traffic manager on its own: depth, rate and order."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.softswitch import QueueSettings, SoftSwitch
from switchgnn.softswitch.traffic_manager import TrafficManager
from tests.softswitch.harness import Rig, config_bytes
from tests.support.waiting import wait_until


def pop_all(queues, now):
    items = []
    while (item := queues.pop(now)) is not None:
        items.append((item[0], item[1]))
    return items


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 10))
def test_order_is_kept_and_the_tail_dropped(ports, depth):
    queues = TrafficManager(QueueSettings(depth=depth))
    kept = []
    for number, port in enumerate(ports):
        queues.push(port, (number,), 0.0)
        if ports[: number + 1].count(port) <= depth:
            kept.append((port, (number,)))
    assert pop_all(queues, 0.0) == kept
    for port in range(4):
        assert queues.tail_drops[port] == max(0, ports.count(port) - depth)
        assert queues.length(port) == 0


def test_rate_spaces_packets_and_leaves_other_ports_alone():
    queues = TrafficManager(QueueSettings(port_rates={1: 10.0}))
    for number in range(5):
        queues.push(1, (number,), 100.0)
    queues.push(2, ("free",), 100.0)
    assert pop_all(queues, 100.0) == [(2, ("free",)), (1, (0,))]
    assert queues.next_time() == pytest.approx(100.1)
    assert pop_all(queues, 100.05) == []
    assert pop_all(queues, 100.25) == [(1, (1,)), (1, (2,))]
    assert pop_all(queues, 200.0) == [(1, (3,)), (1, (4,))]
    assert queues.next_time() is None


def test_an_idle_port_saves_no_burst():
    queues = TrafficManager(QueueSettings(rate=10.0))
    queues.push(1, (0,), 0.0)
    pop_all(queues, 0.0)
    for number in range(3):
        queues.push(1, (number,), 50.0)
    assert len(pop_all(queues, 50.0)) == 1


def test_paced_packets_see_the_queue_they_joined():
    rig = Rig(config_bytes("fates"), QueueSettings(rate=1e9))
    frame = bytes([0, 0, 0, 0, 0, 0])
    rig.run(1, frame)
    assert wait_until(lambda: rig.forwarder.drain() or rig.sent, "paced packet")[0][0] == 2


def test_rate_holds_in_a_running_switch():
    rate, packets = 200.0, 20
    with SoftSwitch(grpc=None, queues=QueueSettings(depth=64, port_rates={2: rate})) as switch:
        switch.load(config_bytes("fates"))
        begin = time.monotonic()
        for _ in range(packets):
            switch.inject(1, bytes(6))
        wait_until(lambda: switch.counts.unattached[2] == packets, "all packets")
        elapsed = time.monotonic() - begin
    assert (packets - 1) / rate * 0.9 <= elapsed
    assert switch.queues.tail_drops == {}


def test_depth_holds_in_a_running_switch():
    with SoftSwitch(grpc=None, queues=QueueSettings(depth=4, rate=0.01)) as switch:
        switch.load(config_bytes("fates"))
        for _ in range(20):
            switch.inject(1, bytes(6))
        # The first leaves at once; four wait for longer than the test.
        assert switch.counts.unattached[2] == 1
        assert switch.queues.length(2) == 4
        assert switch.queues.tail_drops == {2: 15}
