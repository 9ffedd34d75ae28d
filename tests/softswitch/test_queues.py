# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Egress queues, ports that refuse frames, and ports with a rate or a bandwidth."""

import contextlib
import errno
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.softswitch import Backend, EthernetSpec, QueueSettings, SoftSwitch, UdpSpec
from switchgnn.softswitch.ports import Port
from switchgnn.softswitch.replication import Replica
from switchgnn.softswitch.traffic_manager import TrafficManager
from tests.softswitch.harness import RIGS, Rig, config_bytes, free_address, udp_socket
from tests.support.native import needs_compiler
from tests.support.waiting import wait_until

UNICAST, MULTICAST = 2, 3
SLOW = 3


def order(first=UNICAST, port=SLOW, egress=0, payload=b""):
    return bytes([first, 0, egress, 0]) + port.to_bytes(2, "big") + payload


def sized(first=0, port=2, egress=0, payload=b"x" * 72):
    return order(first, port, egress, payload)


def queue_depth(frame):
    return int.from_bytes(frame[24:28], "big")


def test_a_full_socket_is_not_an_error_and_an_error_is_not_a_full_socket():
    def fail(number):
        raise OSError(number, "")

    with socket.socket() as sock:
        port = Port(sock, 100)
        for number in (errno.ENOBUFS, errno.ENETDOWN, errno.ECONNREFUSED):
            port._send = lambda _, number=number: fail(number)
            assert port.send(b"") is False
        port._send = lambda _: fail(errno.EAGAIN)
        with pytest.raises(BlockingIOError):
            port.send(b"")


FROM = 1
FRAME_BYTES = 2000
FRAMES = 60


@contextlib.contextmanager
def blocked_switch(backend, monkeypatch, queues, *, may_refuse):
    """A switch with a port whose far end accepts only a few frames."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    comes, sends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for sock in (near, far, comes):
        sock.setblocking(False)
    sends.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least there is
    ports = {
        FROM: Port(comes, FRAME_BYTES),
        SLOW: Port(near, FRAME_BYTES, may_refuse=may_refuse),
    }
    monkeypatch.setattr("switchgnn.softswitch.switch.open_ports", lambda *_: dict(ports))
    specs = {FROM: EthernetSpec("from"), SLOW: EthernetSpec("slow")}
    with far, sends, SoftSwitch(specs, grpc=None, queues=queues, backend=backend) as switch:
        switch.load(config_bytes("fates"))
        yield switch, sends, far


def watched(backend, monkeypatch, depth, *, may_refuse):
    """The queue after a burst, and the frames that then leave."""
    queues = QueueSettings(depth=depth)
    with blocked_switch(backend, monkeypatch, queues, may_refuse=may_refuse) as made:
        switch, sends, far = made
        for number in range(FRAMES):
            sends.send(order(payload=bytes([number])))
        wait_until(lambda: switch.call(lambda: switch.counts.received[FROM]) == FRAMES, "frames")
        left = switch.call(lambda: (switch.queued(SLOW), dict(switch.counts.tail_drops)))
        expected = FRAMES - left[1].get(SLOW, 0)
        came = []

        def read():
            came.extend(iter(lambda: readable(far), None))
            return len(came) == expected

        wait_until(read, "frames")
        end = switch.call(lambda: (switch.queued(SLOW), dict(switch.counts.sent)))
    return left, [(frame[28:], queue_depth(frame)) for frame in came], end


TRUNCATE = 9
REPORT_BYTES = 22
BYTE_A_SECOND = QueueSettings(bandwidth=8.0)


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def served(rig, clock, seconds):
    """Ports and sizes of the frames that leave after some seconds."""
    rig.sent.clear()
    clock.now += seconds
    rig.forwarder.drain()
    return [(port, len(frame)) for port, frame in rig.sent]


@needs_compiler
@pytest.mark.parametrize(("depth", "may_refuse"), [(1, True), (20, True), (64, True), (64, False)])
def test_both_back_ends_queue_alike(monkeypatch, depth, may_refuse):
    one, other = (
        watched(backend, monkeypatch, depth, may_refuse=may_refuse)
        for backend in (Backend.PYTHON, Backend.NATIVE)
    )
    (waiting, drops), came, _ = one
    assert waiting > 0
    assert other[0] == one[0]
    assert other[2] == one[2] == (0, {SLOW: len(came)})
    assert [payload for payload, _ in other[1]] == [payload for payload, _ in came]
    if may_refuse:  # else frames of a refused batch count as queued
        taken = FRAMES - waiting - drops.get(SLOW, 0)
        # The accepted frames and the first refused one met no queue.
        depths = [0] * taken + list(range(waiting))
        assert [depth for _, depth in came] == [depth for _, depth in other[1]] == depths


@pytest.mark.parametrize(
    "backend", [Backend.PYTHON, pytest.param(Backend.NATIVE, marks=needs_compiler)]
)
def test_a_new_program_starts_with_free_ports(monkeypatch, backend):
    queues = QueueSettings()
    with blocked_switch(backend, monkeypatch, queues, may_refuse=True) as (switch, sends, far):
        for _ in range(FRAMES):
            sends.send(order())
        wait_until(lambda: switch.call(lambda: switch.queued(SLOW)), "a full port")
        wait_until(lambda: switch.call(lambda: switch.counts.received[FROM]) == FRAMES, "frames")
        switch.load(config_bytes("fates"))
        assert switch.queued(SLOW) == 0
        while readable(far):
            pass
        sends.send(order(payload=b"new"))
        frame = wait_until(lambda: readable(far), "the frame")
        assert frame.endswith(b"new")
        assert readable(far) is None


def readable(sock):
    try:
        return sock.recv(FRAME_BYTES)
    except BlockingIOError:
        return None


def test_a_frame_is_charged_with_the_length_it_leaves_with():
    clock = Clock()
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, clock=clock)
    assert len(rig.run(1, sized())) == 1  # an idle line sends at once
    assert rig.run(1, sized()) == []
    assert rig.queues.next_time() == 1000.0 + 78 + REPORT_BYTES
    assert served(rig, clock, 99.9) == []
    assert served(rig, clock, 0.1) == [(2, 100)]
    rig.run(1, sized(TRUNCATE))
    rig.run(1, sized())
    assert served(rig, clock, 100) == [(2, 8)]
    assert served(rig, clock, 7.9) == []
    assert served(rig, clock, 0.1) == [(2, 100)]


def test_a_packet_that_egress_drops_or_recirculates_costs_no_time():
    clock = Clock()
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, clock=clock)
    rig.run(1, sized())
    for egress in (1, 4, 0):
        rig.run(1, sized(egress=egress))
    assert served(rig, clock, 100) == [(2, 100)]
    assert (rig.counts.egress_drops, rig.counts.recirculated) == (1, 1)


def test_a_port_that_nothing_is_attached_to_is_not_limited():
    clock = Clock()
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, attached=[2], clock=clock)
    for _ in range(5):
        rig.run(1, sized())
        rig.run(1, sized(UNICAST, port=300))
        rig.run(1, sized(UNICAST, port=300, egress=4))
    assert rig.counts.unattached == {300: 10}
    assert rig.counts.recirculated == 10
    assert rig.queues.length(2) == 4


FIRST_CLASS = 16  # an order for class c is this plus c


def through_one_line(backend, orders, seconds, depth=100):
    """Payloads of the frames that leave a port at a byte a second, and the queues they found."""
    queues, clock = QueueSettings(depth=depth, bandwidth=8.0), Clock()
    config = config_bytes("fates")
    rig = RIGS[backend](config, queues, [2], clock.now if backend == "native" else clock)
    left = []
    for of_class, payload in orders:
        frames = rig.run(1, bytes([FIRST_CLASS + of_class, 0, 0, 0, 0, 2]) + payload)
        left += [frame for _, frame in frames]
    for _ in range(seconds):
        if backend == "native":
            clock.now += 1
            rig.engine.switch.call("switch_tick", clock.now)
            left += [frame for _, frame in rig.engine.captured()]
        else:
            served(rig, clock, 1)
            left += [frame for _, frame in rig.sent]
    return [(frame[28:], queue_depth(frame)) for frame in left], rig


BACK_ENDS = pytest.mark.parametrize(
    "backend", ["python", pytest.param("native", marks=needs_compiler)]
)


@BACK_ENDS
def test_higher_classes_leave_first_and_have_queues_of_their_own(backend):
    orders = [(0, b"a"), (0, b"b"), (0, b"c"), (2, b"x"), (1, b"p"), (2, b"y"), (7, b"!")]
    left, rig = through_one_line(backend, orders, 500, depth=2)
    # The first one was alone. Each of the others tells how many of its class it found.
    assert left == [(b"a", 0), (b"!", 0), (b"x", 0), (b"y", 1), (b"p", 0), (b"b", 0), (b"c", 1)]
    assert rig.counts.tail_drops == {}
    _, rig = through_one_line(backend, [(c, b"") for c in (0, 0, 0, 0, 1, 1, 1)], 0, depth=2)
    assert rig.counts.tail_drops == {2: 2}


def test_ports_with_equal_lines_take_turns():
    clock = Clock()
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, clock=clock)
    rig.replication.groups[1] = tuple(Replica(port, 1) for port in (4, 4, 4, 5, 6, 6, 5, 5, 6))
    rig.run(1, sized(MULTICAST))
    assert sorted(port for port, _ in rig.sent) == [4, 5, 6]
    # Even with several frames due per port, ports take turns.
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
        port, (number, size), *_ = item
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
    with udp_socket() as receiver:
        specs = {2: UdpSpec(free_address(), receiver.getsockname())}
        queues = QueueSettings(bandwidth=bandwidth)
        with SoftSwitch(specs, grpc=None, queues=queues) as switch:
            switch.load(config_bytes("fates"))
            begin, used = time.monotonic(), time.process_time()
            for number in range(packets):
                switch.inject(1, sized(payload=bytes([number]) * 966))
                switch.inject(1, sized(UNICAST, port=300))
            assert switch.counts.unattached[300] == packets  # at once
            got = [receiver.recv(2000) for _ in range(packets)]
            elapsed, used = time.monotonic() - begin, time.process_time() - used
    assert [frame[-1] for frame in got] == list(range(packets))
    assert elapsed >= (packets - 1) * len(got[0]) * 8 / bandwidth * 0.99
    assert used < elapsed / 2


def test_calls_during_the_computation_of_the_timeout_are_served():
    with SoftSwitch({}, grpc=None, queues=QueueSettings(rate=2000.0)) as switch:
        switch.load(config_bytes("fates"))
        for sent in range(2, 302, 2):
            switch.inject(1, sized())
            switch.inject(1, sized())
            wait_until(lambda sent=sent: switch.counts.unattached[2] == sent, "both packets")


def test_depth_holds_in_a_running_switch():
    with SoftSwitch(grpc=None, queues=QueueSettings(depth=4, rate=0.01)) as switch:
        switch.load(config_bytes("fates"))
        for _ in range(20):
            switch.inject(1, bytes(6))
        # The first leaves at once, four wait.
        assert switch.counts.unattached[2] == 1
        assert switch.queued(2) == 4
        assert switch.counts.tail_drops == {2: 15}
