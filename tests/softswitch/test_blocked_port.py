# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A port that takes no frame now: both back ends show the program the same queue."""

import contextlib
import socket

import pytest

from switchgnn.softswitch import Backend, EthernetSpec, QueueSettings, SoftSwitch
from switchgnn.softswitch.errors import PortError
from switchgnn.softswitch.ports import SocketPort, find_interface
from tests.softswitch.harness import config_bytes
from tests.softswitch.namespace import make_wire, needs_shaping, network_namespace, shape
from tests.softswitch.test_pressure import order, queue_depth
from tests.support.native import needs_compiler
from tests.support.waiting import wait_until

FROM, SLOW = 1, 3
FRAME_BYTES = 2000
FRAMES = 60


@contextlib.contextmanager
def blocked_switch(backend, monkeypatch, queues, *, may_refuse):
    """A switch with a port whose far end takes a few frames and then reads no more."""
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
    """What a burst leaves in the queue, and what then comes out."""
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
    """Every frame, the depth that it met, and what is dropped."""
    one, other = (
        watched(backend, monkeypatch, depth, may_refuse=True)
        for backend in (Backend.PYTHON, Backend.NATIVE)
    )
    assert one == other
    (waiting, drops), came, end = one
    taken = FRAMES - waiting - drops.get(SLOW, 0)
    # What the far end has taken, and the one that was refused, met no queue.
    assert [depth for _, depth in came] == [0] * taken + list(range(waiting))
    assert end == (0, {SLOW: len(came)})


@needs_compiler
def test_frames_of_a_batch_that_is_refused_count_as_queued(monkeypatch):
    """Those of a port that was not expected to refuse any: the first of them met no queue yet."""
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


@needs_shaping
def test_frames_wait_in_an_interface_that_is_shaped():
    with network_namespace():
        assert make_wire("one0", "one1")
        assert not find_interface("one0").queues
        assert shape("one0", "1mbit")
        assert find_interface("one0").queues
        assert find_interface("one0").qdisc == "tbf"
        assert find_interface("one0").mtu == 1500
        with pytest.raises(OSError, match="no interface"):
            find_interface("none0")
