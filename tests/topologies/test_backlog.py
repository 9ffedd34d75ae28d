# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What waits at sockets, as the kernel says."""

import os
import socket

from switchgnn.topologies.fabric import packet_backlog, udp_backlog
from tests.support.markers import needs_root


def test_what_a_program_has_not_taken_waits():
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        names = ["{}:{}".format(*each.getsockname()) for each in (one, other)]
        assert [udp_backlog()[name] for name in names] == [0, 0]
        one.sendto(b"x" * 500, other.getsockname())
        seen = udp_backlog()
        assert seen[names[0]] == 0
        assert seen[names[1]] >= 500
        other.recv(1000)
        assert udp_backlog()[names[1]] == 0
    assert names[1] not in udp_backlog()


@needs_root
def test_packet_sockets_of_an_interface():
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as listening:
        listening.bind(("lo", 0x0800))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
            sending.sendto(b"x" * 500, ("127.0.0.1", 9))
        assert packet_backlog(os.getpid())["lo"] >= 500
