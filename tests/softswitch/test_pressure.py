# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A port that takes no frame now: what waits, what is dropped, and who goes on."""

import contextlib
import errno
import select
import socket
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.softswitch import Backend, EthernetSpec, QueueSettings, SoftSwitch
from switchgnn.softswitch.ports import SocketPort
from switchgnn.softswitch.replication import Replica
from switchgnn.softswitch.traffic_manager import DEFAULT_DEPTH
from tests.softswitch.harness import Rig, config_bytes
from tests.softswitch.namespace import make_wire, needs_shaping, network_namespace, shape
from tests.support.speed import Deadline
from tests.support.waiting import wait_until

UNICAST, MULTICAST = 2, 3
SLOW, QUICK = 3, 4
SO_RCVBUFFORCE = 33


def order(first=UNICAST, port=SLOW, egress=0, payload=b""):
    return bytes([first, 0, egress, 0]) + port.to_bytes(2, "big") + payload


def queue_depth(frame):
    return int.from_bytes(frame[24:28], "big")


class Rein:
    """A rig whose slow port takes as many frames as it has room for."""

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
        """Payloads that leave when there is room for so many more."""
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
    # The first is on its way, three wait.
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
    clock = SimpleNamespace(now=0.0)
    rein = Rein(QueueSettings(bandwidth=8.0), lambda: clock.now)
    for _ in range(2):
        rein.rig.run(1, order(payload=bytes(72)))
    clock.now = 500.0
    assert len(rein.writable(9)) == 1
    assert rein.rig.queues.next_time() == 600.0


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
    """A switch with a slow and a quick port, and the sockets at their other ends."""
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(network_namespace())
        assert make_wire("slow", "slowpeer")
        assert make_wire("quick", "quickpeer")
        assert shape("slow", rate)
        ends = {SLOW: listen(stack, "slowpeer"), QUICK: listen(stack, "quickpeer")}
        ports = {SLOW: EthernetSpec("slow"), QUICK: EthernetSpec("quick")}
        switch = stack.enter_context(SoftSwitch(ports, grpc=None))
        switch.load(config_bytes("fates"))
        yield switch, ends


def listen(stack, interface):
    sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    sock.bind((interface, 3))
    return sock


def receive(ends, expected, seconds=10.0):
    """Frames and arrival times by port until so many came, or the time is over."""
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
    # 1000 bytes take 27 ms at 300 kbit/s.
    assert took > 1.2
    assert used < took / 2
    # What the kernel keeps is not much: the program saw most of the queue.
    assert max(queue_depth(frame) for _, frame in got[SLOW]) >= frames * 2 // 3
    assert max(queue_depth(frame) for _, frame in got[QUICK]) == 0


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


@needs_shaping
def test_a_switch_that_takes_a_full_socket_for_an_error_loses_frames(monkeypatch):
    """That the wire of these tests blocks at all."""

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
