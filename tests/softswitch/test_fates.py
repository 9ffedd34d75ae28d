# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The fates of packets, egress queues, and loops."""

import json
import struct
import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.softswitch import QueueSettings, SoftSwitch
from switchgnn.softswitch.replication import CloneSession, Replica
from switchgnn.softswitch.traffic_manager import TrafficManager
from tests.softswitch.harness import Rig, config_bytes
from tests.support.waiting import wait_until

NOTHING, DROP, UNICAST, MULTICAST, CLONE, RESUBMIT, NO_GROUP = range(7)
CLONE_UNLISTED, DROP_PORT, TRUNCATE, EXIT, UNKNOWN_GROUP = 7, 8, 9, 10, 11
REPORT = struct.Struct(">HHIHIHHI")


@pytest.fixture
def rig():
    rig = Rig(config_bytes("fates"))
    rig.replication.groups[1] = (Replica(4, 7), Replica(5, 8), Replica(4, 9))
    rig.replication.sessions[5] = CloneSession((Replica(6, 3),))
    rig.replication.sessions[6] = CloneSession((Replica(7, 0), Replica(8, 1)))
    return rig


def order(first=0, second=0, egress=0, argument=0, payload=b"payload"):
    return bytes([first, second, egress, 0]) + argument.to_bytes(2, "big") + payload


def report(frame):
    """(ingress port, egress port, instance type, rid, length, kept, lost, queue depth)."""
    return REPORT.unpack_from(frame, 6)


def ports(sent):
    return [port for port, _ in sent]


def test_unicast_reports_normal_instance_and_length(rig):
    ((port, frame),) = rig.run(9, order(UNICAST, argument=3))
    assert port == 3
    assert report(frame) == (9, 3, 0, 0, 13, 0x11, 0x22, 0)
    assert frame[3] == 1
    assert frame.endswith(b"payload")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (DROP, NOTHING, []),
        (DROP_PORT, NOTHING, []),
        (DROP, UNICAST, [3]),  # the last writer of egress_spec wins
        (UNICAST, DROP, []),
        (MULTICAST, DROP, []),  # dropping clears the group
        (DROP, MULTICAST, [4, 5, 4]),  # a group beats the drop port
        (MULTICAST, UNICAST, [4, 5, 4]),  # and a unicast port
        (MULTICAST, DROP_PORT, [4, 5, 4]),
        (MULTICAST, NO_GROUP, [2]),
        (UNKNOWN_GROUP, NOTHING, []),
        (MULTICAST, RESUBMIT, [3]),  # resubmitting beats a group
        (RESUBMIT, DROP, [3]),
        (CLONE, DROP, [6]),  # clones are made whatever becomes of the packet
        (CLONE, MULTICAST, [6, 4, 5, 4]),
        (CLONE, RESUBMIT, [6, 3]),
        (CLONE, CLONE_UNLISTED, [7, 8, 2]),  # the last clone call wins
        (MULTICAST, EXIT, [4, 5, 4]),
    ],
)
def test_precedence_after_ingress(rig, first, second, expected):
    assert ports(rig.run(1, order(first, second, argument=3))) == expected


def test_drops_are_counted(rig):
    rig.run(1, order(DROP))
    rig.run(1, order(egress=1))
    assert (rig.counts.ingress_drops, rig.counts.egress_drops) == (1, 1)


def test_multicast_copies_keep_metadata_and_differ_in_rid(rig):
    sent = rig.run(9, order(MULTICAST))
    reports = [report(frame) for _, frame in sent]
    assert [r[1:4] for r in reports] == [(4, 5, 7), (5, 5, 8), (4, 5, 9)]
    assert all(r[0] == 9 and r[5:7] == (0x11, 0x22) for r in reports)
    assert [r[7] for r in reports] == [0, 0, 1]


def test_ingress_clone_is_the_original_packet_with_listed_fields_only(rig):
    clone, original = rig.run(9, order(CLONE))
    assert (clone[0], original[0]) == (6, 2)
    assert clone[1][3] == 0  # the round written by ingress is not in the clone
    assert report(clone[1]) == (0, 6, 1, 3, 13, 0x11, 0, 0)
    assert original[1][3] == 1


def test_ingress_clone_without_list_zeroes_metadata(rig):
    clone = rig.run(9, order(CLONE_UNLISTED))[0][1]
    assert report(clone) == (0, 7, 1, 0, 13, 0, 0, 0)


def test_clone_to_unknown_session_makes_no_copy(rig):
    rig.replication.sessions.clear()
    assert ports(rig.run(1, order(CLONE))) == [2]


def test_clone_session_can_shorten_copies(rig):
    rig.replication.sessions[5] = CloneSession((Replica(6, 3),), max_length=10)
    clone, original = rig.run(1, order(CLONE))
    assert len(clone[1]) == 10
    assert len(original[1]) == 13 + REPORT.size


def test_resubmit_starts_over_with_listed_fields_only(rig):
    ((port, frame),) = rig.run(9, order(RESUBMIT))
    assert port == 3
    assert frame[4:6] == b"\x00\x11"
    assert frame[3] == 0
    # simple_switch starts the second pass without the ingress port.
    assert report(frame) == (0, 3, 0, 0, 13, 0x11, 0, 0)
    assert rig.counts.resubmitted == 1


def test_egress_clone_has_the_headers_of_egress(rig):
    original, clone = rig.run(9, order(egress=2))
    assert original[0] == 2
    assert clone[0] == 6
    ingress_port, port, instance_type, rid, _, kept, lost, _ = report(clone[1])
    assert (ingress_port, port, instance_type, rid, kept, lost) == (0, 6, 2, 3, 0x11, 0)
    assert clone[1][3] == 1


def test_egress_clone_of_a_dropped_packet(rig):
    assert ports(rig.run(9, order(egress=3))) == [6]


def test_recirculation_keeps_listed_fields_and_the_deparsed_packet(rig):
    ((port, frame),) = rig.run(9, order(egress=4))
    assert port == 2
    assert frame[3] == 3
    assert report(frame) == (0, 2, 0, 0, 13, 0x33, 0x22, 0)
    assert rig.counts.recirculated == 2


def test_dropping_in_egress_beats_recirculation(rig):
    rig.run(9, order(egress=1))
    assert rig.counts.recirculated == 0


def test_truncate_shortens_the_sent_packet(rig):
    ((_, frame),) = rig.run(1, order(TRUNCATE))
    assert len(frame) == 8


def test_unattached_port_is_counted():
    rig = Rig(config_bytes("fates"), attached=[])
    assert rig.run(1, order()) == []
    assert rig.counts.unattached == {2: 1}


def test_queue_depth_limits_copies_to_one_port():
    rig = Rig(config_bytes("fates"), QueueSettings(depth=3))
    rig.replication.groups[1] = tuple(Replica(4 + i % 2, i) for i in range(12))
    assert sorted(ports(rig.run(1, order(MULTICAST)))) == [4, 4, 4, 5, 5, 5]
    assert rig.queues.tail_drops == {4: 3, 5: 3}


def test_no_more_than_the_limit_waits_for_recirculation():
    rig = Rig(config_bytes("fates"))
    for _ in range(1500):
        rig.forwarder.receive(1, order(egress=4))
    assert rig.counts.again_drops == 1500 - 1024


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(0, [3]), (1, []), (2, []), (3, []), (4, [7]), (5, [])],
)
def test_a_drop_counts_also_of_metadata_that_is_a_parameter(kind, expected):
    rig = Rig(config_bytes("dropping"))
    rig.replication.groups[5] = (Replica(4, 7),)
    assert ports(rig.run(1, bytes([kind, 3]))) == expected


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
        # The first leaves at once, four wait.
        assert switch.counts.unattached[2] == 1
        assert switch.queues.length(2) == 4
        assert switch.queues.tail_drops == {2: 15}


ADD, ADD_THIRDS, NESTED, NESTED_THIRDS, SEARCH, SEARCH_OTHER, ENDLESS = range(1, 8)


def looping_control():
    """The program repeated for as many turns as the packet says."""
    document = json.loads(config_bytes("loops"))
    pipeline = document["pipelines"][0]
    turns, limit = ({"type": "field", "value": ["n", name]} for name in ("turns", "limit"))
    condition = {"op": "<", "left": turns, "right": limit}
    table = next(t for t in pipeline["tables"] if t["name"] == "Enter.work")
    pipeline["conditionals"].append(
        {
            "name": "more",
            "id": 99,
            "expression": {"type": "expression", "value": condition},
            "true_next": table["name"],
            "false_next": None,
        }
    )
    table["base_default_next"] = "more"
    table["next_tables"] = dict.fromkeys(table["next_tables"], "more")
    return json.dumps(document).encode()


@cache
def rig_of(kind, control=False):
    return kind(looping_control() if control else config_bytes("loops"))


def run(rig, what, count, limit=0, turns=0):
    """Sum, product and turns computed by the program."""
    frame = bytes([what, count, limit]) + bytes(8) + bytes([turns]) + b"rest"
    ((port, sent),) = rig.run(0, frame)
    assert (port, sent[:3], sent[12:]) == (1, frame[:3], b"rest")
    return int.from_bytes(sent[3:7], "big"), int.from_bytes(sent[7:11], "big"), sent[11]


@pytest.mark.parametrize("count", [0, 1, 5, 255])
def test_a_sum(count):
    assert run(rig_of(Rig), ADD, count) == (sum(range(count)), 0, 0)


def test_a_sum_in_steps():
    assert run(rig_of(Rig), ADD_THIRDS, 10) == (0 + 3 + 6 + 9, 0, 0)


# The pairs i <= j, less those of 6, up to the first 9.
@pytest.mark.parametrize(
    ("what", "count", "limit", "product"),
    [
        (NESTED, 0, 5, 0),
        (NESTED, 3, 3, 3 + 2 + 1),
        (NESTED, 2, 8, 7 + 6),
        (NESTED, 1, 20, 8),
        (NESTED, 12, 12, 8 + 7 + 6 + 5 + 4 + 3 + 2 + 2 + 1 + 0 + 2 + 1),
        # Every third: 0, 3 and then 9; 1, 4, 7 and 10.
        (NESTED_THIRDS, 1, 12, 2),
        (NESTED_THIRDS, 2, 12, 2 + 4),
    ],
)
def test_loops_in_loops(what, count, limit, product):
    assert run(rig_of(Rig), what, count, limit) == (0, product, count)


def test_a_loop_that_is_left():
    rig = Rig(config_bytes("loops"))
    assert [run(rig, what, 0)[2] for what in (SEARCH, SEARCH_OTHER, SEARCH, SEARCH_OTHER)] == [
        *(0, 1, 0, 1)
    ]
    assert list(rig.state.registers["Enter.cells"].cells) == [77, 78, *[0] * 14]


def test_a_loop_to_its_end():
    rig = Rig(config_bytes("loops"))
    rig.state.registers["Enter.cells"].cells[:] = [5] * 16
    assert run(rig, SEARCH, 0)[2] == 15


@pytest.mark.parametrize(("limit", "turns", "after"), [(5, 0, 5), (5, 3, 5), (5, 9, 10), (0, 0, 1)])
def test_a_loop_of_tables(limit, turns, after):
    assert run(rig_of(Rig, True), NESTED, 1, limit, turns) == (0, limit, after)


def test_a_loop_without_end_ends():
    assert run(rig_of(Rig, True), ENDLESS, 0, 5, 4) == (0, 0, 4)
