# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of packets: drop, multicast, clone, resubmit, recirculate, and who wins."""

import struct

import pytest

from switchgnn.softswitch import QueueSettings
from switchgnn.softswitch.replication import CloneSession, Replica
from tests.softswitch.harness import Rig, config_bytes

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
