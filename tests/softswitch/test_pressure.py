# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ports that refuse frames, and ports with a bandwidth."""

import contextlib
import errno
import select
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.softswitch import Backend, EthernetSpec, QueueSettings, SoftSwitch, UdpSpec
from switchgnn.softswitch.errors import PortError
from switchgnn.softswitch.ports import SocketPort, find_interface
from switchgnn.softswitch.replication import Replica
from switchgnn.softswitch.traffic_manager import DEFAULT_DEPTH, TrafficManager
from tests.softswitch.harness import Rig, config_bytes, free_address, udp_socket
from tests.softswitch.namespace import needs_shaping, shape, wires
from tests.support.native import needs_compiler
from tests.support.speed import Deadline
from tests.support.waiting import wait_until

UNICAST, MULTICAST = 2, 3
SLOW, QUICK = 3, 4


def order(first=UNICAST, port=SLOW, egress=0, payload=b""):
    return bytes([first, 0, egress, 0]) + port.to_bytes(2, "big") + payload


def sized(first=0, port=2, egress=0, payload=b"x" * 72):
    return order(first, port, egress, payload)


def queue_depth(frame):
    return int.from_bytes(frame[24:28], "big")


class Rein:
    """A rig whose slow port accepts as many frames as it has room for."""

    def __init__(self, queues=None, clock=time.monotonic):
        self.rig = Rig(config_bytes("fates"), queues, clock=clock)
        self.room = 0
        self.plain = self.rig.forwarder._senders[SLOW]
        self.rig.forwarder._senders[SLOW] = self.send

    def send(self, frame):
        if not self.room:
            raise BlockingIOError
        self.room -= 1
        return self.plain(frame)

    def writable(self, room):
        """Payloads sent when there is room for more frames."""
        self.room += room
        self.rig.sent.clear()
        self.rig.forwarder.writable(SLOW)
        return [frame[28:] for _, frame in self.rig.sent]


def test_frames_wait_for_their_port_in_order_and_others_go_on():
    rein = Rein()
    rein.rig.replication.groups[1] = tuple(Replica(port, 1) for port in (SLOW, QUICK, SLOW))
    for number in range(3):
        assert rein.rig.run(1, order(payload=bytes([number]))) == []
        assert len(rein.rig.run(1, order(port=QUICK))) == 1
    assert [port for port, _ in rein.rig.run(1, order(MULTICAST, payload=b"m"))] == [QUICK]
    assert rein.writable(0) == []
    assert rein.writable(2) == [b"\0", b"\1"]
    assert rein.writable(9) == [b"\2", b"m", b"m"]
    assert len(rein.rig.run(1, order())) == 1
    assert rein.rig.counts.sent == {SLOW: 6, QUICK: 4}
    assert rein.rig.counts.send_errors == {}


def test_the_copies_behind_the_one_that_blocks_stay_in_order():
    rein = Rein()
    rein.rig.replication.groups[1] = (Replica(SLOW, 1), Replica(SLOW, 2), Replica(QUICK, 3))
    assert [port for port, _ in rein.rig.run(1, order(MULTICAST, payload=b"a"))] == [QUICK]
    rein.rig.run(1, order(payload=b"b"))
    assert rein.writable(9) == [b"a", b"a", b"b"]


def test_the_program_sees_the_queue_and_its_tail_is_dropped():
    rein = Rein(QueueSettings(depth=3))
    for _ in range(6):
        rein.rig.run(1, order())
    # One was refused by the port, three are queued.
    assert rein.rig.queues.length(SLOW) == 3
    assert rein.rig.queues.tail_drops == {SLOW: 2}
    rein.writable(9)
    assert [queue_depth(frame) for _, frame in rein.rig.sent] == [0, 0, 1, 2]
    rein.rig.run(1, order())
    assert rein.rig.queues.tail_drops == {SLOW: 2}


@given(st.lists(st.integers(-1, 3), max_size=80), st.booleans())
def test_no_frame_is_lost_or_overtaken_however_often_a_port_blocks(steps, limited):
    rein = Rein(QueueSettings(depth=100, rate=1e9 if limited else None))
    left, number = [], 0
    for step in steps:
        if step < 0:
            left += [frame[28:] for _, frame in rein.rig.run(1, order(payload=bytes([number])))]
            number += 1
        else:
            left += rein.writable(step)
    wait_until(lambda: left.extend(rein.writable(100)) or len(left) == number, "all frames")
    assert left == [bytes([n]) for n in range(number)]
    assert rein.rig.queues.length(SLOW) == 0


def test_a_held_frame_takes_its_time_on_the_line_after_it_was_held():
    clock = Clock()
    rein = Rein(BYTE_A_SECOND, clock)
    for _ in range(2):
        rein.rig.run(1, order(payload=bytes(72)))
    clock.now += 500
    assert len(rein.writable(9)) == 1
    assert rein.rig.queues.next_time() == clock.now + 100


def test_a_new_program_starts_with_free_ports():
    rein = Rein()
    for _ in range(3):
        rein.rig.run(1, order())
    rein.rig.queues.clear()
    rein.rig.forwarder.held.clear()
    rein.room = 9
    assert len(rein.rig.run(1, order())) == 1


def test_a_full_socket_is_not_an_error_and_an_error_is_not_a_full_socket():
    def fail(number):
        raise OSError(number, "")

    with socket.socket() as sock:
        port = SocketPort(sock, 100)
        for number in (errno.ENOBUFS, errno.ENETDOWN, errno.ECONNREFUSED):
            port._send = lambda _, number=number: fail(number)
            assert port.send(b"") is False
        port._send = lambda _: fail(errno.EAGAIN)
        with pytest.raises(BlockingIOError):
            port.send(b"")


@contextlib.contextmanager
def shaped_switch(rate):
    with wires("slow", "quick") as (slow, quick):
        assert shape("slow0", rate)
        ports = {SLOW: EthernetSpec("slow0"), QUICK: EthernetSpec("quick0")}
        with SoftSwitch(ports, grpc=None) as switch:
            switch.load(config_bytes("fates"))
            yield switch, {SLOW: slow, QUICK: quick}


def receive(ends, expected, seconds=10.0):
    """Frames with arrival times by port, until the expected number came."""
    got = {port: [] for port in ends}
    deadline = Deadline(seconds)
    numbers = {sock.fileno(): port for port, sock in ends.items()}
    while any(len(got[port]) < expected[port] for port in got) and not deadline.is_over():
        for descriptor in select.select(list(numbers), [], [], 0.05)[0]:
            port = numbers[descriptor]
            got[port].append((time.monotonic(), ends[port].recv(2000)))
    return got


def payload_numbers(frames):
    return [int.from_bytes(frame[28:30], "big") for _, frame in frames]


def burst(switch, frames):
    for number in range(frames):
        for port in (SLOW, QUICK):
            switch.inject(1, order(port=port, payload=number.to_bytes(2, "big") + bytes(970)))


@pytest.mark.whole
@needs_shaping
def test_a_shaped_port_loses_nothing_and_delays_nobody():
    frames = 60
    with shaped_switch(rate="300kbit") as (switch, ends):
        begin, used = time.monotonic(), time.process_time()
        burst(switch, frames)
        assert switch.counts.sent[QUICK] == frames  # though the other port has just begun
        got = receive(ends, dict.fromkeys(ends, frames))
        took, used = time.monotonic() - begin, time.process_time() - used
        assert switch.call(lambda: switch.counts.sent) == {SLOW: frames, QUICK: frames}
        assert switch.queues.tail_drops == {}
    for port in ends:
        assert payload_numbers(got[port]) == list(range(frames))
    assert took > 1.2
    assert used < took / 2
    # The program saw most of the queue, the kernel keeps little.
    assert max(queue_depth(frame) for _, frame in got[SLOW]) >= frames * 2 // 3
    assert max(queue_depth(frame) for _, frame in got[QUICK]) == 0


@pytest.mark.whole
@needs_shaping
def test_beyond_the_depth_of_its_queue_a_shaped_port_drops_the_tail():
    frames = DEFAULT_DEPTH + 100
    with shaped_switch(rate="10mbit") as (switch, ends):
        burst(switch, frames)
        lost = switch.queues.tail_drops[SLOW]
        got = receive(ends, {SLOW: frames - lost, QUICK: frames})
    assert 0 < lost < frames - DEFAULT_DEPTH
    kept = payload_numbers(got[SLOW])
    assert kept == sorted(set(kept))
    assert len(kept) == frames - lost
    assert payload_numbers(got[QUICK]) == list(range(frames))


@pytest.mark.whole
@needs_shaping
def test_a_switch_that_takes_a_full_socket_for_an_error_loses_frames(monkeypatch):
    """The wire of these tests does block."""

    def send(self, frame):
        try:
            self._send(frame)
        except OSError:
            return False
        return True

    monkeypatch.setattr(SocketPort, "send", send)
    monkeypatch.setitem(SoftSwitch.__init__.__kwdefaults__, "backend", Backend.PYTHON)
    with shaped_switch(rate="300kbit") as (switch, _):
        burst(switch, 60)
        assert switch.counts.send_errors[SLOW] > 20


@pytest.mark.whole
@needs_shaping
def test_a_blocked_port_survives_a_new_program():
    with shaped_switch(rate="300kbit") as (switch, ends):
        burst(switch, 60)
        switch.load(config_bytes("fates"))
        marked = order(payload=b"\xff\xff" + bytes(970))
        switch.inject(1, marked)
        got = receive({SLOW: ends[SLOW]}, {SLOW: 1000}, seconds=0.5)
        assert payload_numbers(got[SLOW])[-1] == 0xFFFF
        assert len(got[SLOW]) < 30


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
    ports = {
        FROM: SocketPort(comes, FRAME_BYTES),
        SLOW: SocketPort(near, FRAME_BYTES, may_refuse=may_refuse),
    }
    monkeypatch.setattr("switchgnn.softswitch.switch.open_ports", lambda *_: dict(ports))
    specs = {FROM: EthernetSpec("from"), SLOW: EthernetSpec("slow")}
    with far, sends, SoftSwitch(specs, grpc=None, queues=queues, backend=backend) as switch:
        switch.load(config_bytes("fates"))
        yield switch, sends, far


def watched(backend, monkeypatch, depth, *, may_refuse):
    """The queue after a burst, and the frames that then leave."""
    queues = QueueSettings(depth=depth)
    with blocked_switch(backend, monkeypatch, queues, may_refuse=may_refuse) as (
        switch,
        sends,
        far,
    ):
        for number in range(FRAMES):
            sends.send(order(payload=bytes([number])))
        wait_until(lambda: switch.call(lambda: switch.counts.received[FROM]) == FRAMES, "frames")
        left = switch.call(lambda: (switch.queues.length(SLOW), dict(switch.queues.tail_drops)))
        expected = FRAMES - left[1].get(SLOW, 0)
        came = []

        def read():
            with contextlib.suppress(BlockingIOError):
                while True:
                    came.append(far.recv(FRAME_BYTES))
            return len(came) == expected

        wait_until(read, "frames")
        end = switch.call(lambda: (switch.queues.length(SLOW), dict(switch.counts.sent)))
    return left, [(frame[28:], queue_depth(frame)) for frame in came], end


@needs_compiler
@pytest.mark.parametrize("depth", [1, 20, 64])
def test_the_program_sees_the_same_queue(monkeypatch, depth):
    one, other = (
        watched(backend, monkeypatch, depth, may_refuse=True)
        for backend in (Backend.PYTHON, Backend.NATIVE)
    )
    assert one == other
    (waiting, drops), came, end = one
    taken = FRAMES - waiting - drops.get(SLOW, 0)
    # The accepted frames and the first refused one met no queue.
    assert [depth for _, depth in came] == [0] * taken + list(range(waiting))
    assert end == (0, {SLOW: len(came)})


@needs_compiler
def test_frames_of_a_batch_that_is_refused_count_as_queued(monkeypatch):
    """For a port that refuses frames unexpectedly."""
    one, other = (
        watched(backend, monkeypatch, 64, may_refuse=False)
        for backend in (Backend.PYTHON, Backend.NATIVE)
    )
    assert one[0] == other[0]
    assert one[2] == other[2]
    assert [payload for payload, _ in one[1]] == [payload for payload, _ in other[1]]


@pytest.mark.parametrize(
    "backend", [Backend.PYTHON, pytest.param(Backend.NATIVE, marks=needs_compiler)]
)
def test_there_is_no_port_above_510(backend):
    with SoftSwitch(grpc=None, backend=backend) as switch:
        switch.load(config_bytes("fates"))
        for port in (-1, 511, 1 << 20):
            with pytest.raises(PortError, match=f"There is no port {port}"):
                switch.inject(port, order())


@pytest.mark.whole
@needs_shaping
def test_frames_wait_in_an_interface_that_is_shaped():
    with wires("one"):
        assert not find_interface("one0").queues
        assert shape("one0", "1mbit")
        assert find_interface("one0").queues
        assert find_interface("one0").qdisc == "tbf"
        assert find_interface("one0").mtu == 1500
        with pytest.raises(OSError, match="no interface"):
            find_interface("none0")


TRUNCATE = 9
REPORT_BYTES = 22
BYTE_A_SECOND = QueueSettings(bandwidth=8.0)


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def served(rig, clock, seconds):
    """Ports and sizes of the frames that leave after some seconds."""
    rig.sent.clear()
    clock.now += seconds
    rig.forwarder.drain()
    return [(port, len(frame)) for port, frame in rig.sent]


def test_a_frame_is_charged_with_the_length_it_leaves_with(clock):
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


def test_a_packet_that_egress_drops_or_recirculates_costs_no_time(clock):
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, clock=clock)
    rig.run(1, sized())
    for egress in (1, 4, 0):
        rig.run(1, sized(egress=egress))
    assert served(rig, clock, 100) == [(2, 100)]
    assert (rig.counts.egress_drops, rig.counts.recirculated) == (1, 1)


def test_a_port_that_nothing_is_attached_to_is_not_limited(clock):
    rig = Rig(config_bytes("fates"), BYTE_A_SECOND, attached=[2], clock=clock)
    for _ in range(5):
        rig.run(1, sized())
        rig.run(1, sized(UNICAST, port=300))
        rig.run(1, sized(UNICAST, port=300, egress=4))
    assert rig.counts.unattached == {300: 10}
    assert rig.counts.recirculated == 10
    assert rig.queues.length(2) == 4


def test_the_program_sees_the_queue_of_the_line(clock):
    rig = Rig(config_bytes("fates"), QueueSettings(depth=3, bandwidth=8.0), clock=clock)
    frames = [frame for _ in range(6) for _, frame in rig.run(1, sized())]
    assert rig.queues.tail_drops == {2: 2}
    for _ in range(3):
        served(rig, clock, 100)
        frames += [frame for _, frame in rig.sent]
    assert [queue_depth(frame) for frame in frames] == [0, 0, 1, 2]


def test_ports_with_equal_lines_take_turns(clock):
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


def test_a_waiting_queue_needs_no_processor():
    with SoftSwitch({}, grpc=None, queues=QueueSettings(rate=1.0)) as switch:
        switch.load(config_bytes("fates"))
        for _ in range(2):
            switch.inject(1, sized())
        used = time.process_time()
        wait_until(lambda: switch.counts.unattached[2] == 2, "the second packet")
        assert time.process_time() - used < 0.3


def test_calls_during_the_computation_of_the_timeout_are_served():
    with SoftSwitch({}, grpc=None, queues=QueueSettings(rate=2000.0)) as switch:
        switch.load(config_bytes("fates"))
        for sent in range(2, 1002, 2):
            switch.inject(1, sized())
            switch.inject(1, sized())
            wait_until(lambda sent=sent: switch.counts.unattached[2] == sent, "both packets")
