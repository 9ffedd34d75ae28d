"""Egress queues, ports that refuse frames, and ports with a rate or a bandwidth."""

import contextlib
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.softswitch import EthernetSpec, QueueSettings, SoftSwitch, UdpSpec
from switchgnn.softswitch.base.ports import Port
from switchgnn.softswitch.base.state import Replica
from tests.softswitch.harness import NativeRig, config_bytes, free_address, udp_socket
from tests.softswitch.test_programs import MULTICAST, TRUNCATE, UNICAST, order
from tests.support.markers import needs_compiler
from tests.support.waiting import wait_until

pytestmark = needs_compiler
SLOW = 3


def sized(first=0, port=2, egress=0, payload=b"x" * 72):
    return order(first, 0, egress, port, payload)


def queue_depth(frame):
    return int.from_bytes(frame[24:28], "big")


FROM = 1
FRAME_BYTES = 2000
FRAMES = 60


@contextlib.contextmanager
def blocked_switch(monkeypatch, queues, *, may_refuse):
    """A switch with a port whose far end accepts only a few frames."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    comes, sends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for sock in (near, far, comes):
        sock.setblocking(False)
    sends.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least there is
    ports = {FROM: Port(comes, FRAME_BYTES), SLOW: Port(near, FRAME_BYTES, may_refuse=may_refuse)}
    monkeypatch.setattr("switchgnn.softswitch.switch.open_ports", lambda *_: dict(ports))
    specs = {FROM: EthernetSpec("from"), SLOW: EthernetSpec("slow")}
    with far, sends, SoftSwitch(specs, grpc=None, queues=queues) as switch:
        switch.load(config_bytes("fates"))
        yield switch, sends, far


@pytest.mark.parametrize(("depth", "may_refuse"), [(1, True), (20, True), (64, True), (64, False)])
def test_what_a_port_refuses_waits_in_its_queue(monkeypatch, depth, may_refuse):
    with blocked_switch(monkeypatch, QueueSettings(depth=depth), may_refuse=may_refuse) as made:
        switch, sends, far = made
        for number in range(FRAMES):
            sends.send(order(UNICAST, argument=SLOW, payload=bytes([number])))
        wait_until(lambda: switch.call(lambda: switch.counts.received[FROM]) == FRAMES, "frames")
        waiting, drops = switch.call(
            lambda: (switch.queued(SLOW), switch.counts.tail_drops.get(SLOW, 0))
        )
        came = []

        def read():
            came.extend(iter(lambda: readable(far), None))
            return len(came) == FRAMES - drops

        wait_until(read, "frames")
        left = switch.call(lambda: (switch.queued(SLOW), dict(switch.counts.sent)))
        assert left == (0, {SLOW: len(came)})
    assert waiting > 0
    taken = FRAMES - waiting - drops
    assert [frame[28] for frame in came] == list(range(taken + waiting))
    if may_refuse:  # else frames of a refused batch count as queued
        # The accepted frames and the first refused one met no queue.
        assert [queue_depth(frame) for frame in came] == [0] * taken + list(range(waiting))


def test_a_new_program_starts_with_free_ports(monkeypatch):
    with blocked_switch(monkeypatch, QueueSettings(), may_refuse=True) as (switch, sends, far):
        for _ in range(FRAMES):
            sends.send(order(UNICAST, argument=SLOW))
        wait_until(lambda: switch.call(lambda: switch.queued(SLOW)), "a full port")
        wait_until(lambda: switch.call(lambda: switch.counts.received[FROM]) == FRAMES, "frames")
        switch.load(config_bytes("fates"))
        assert switch.queued(SLOW) == 0
        while readable(far):
            pass
        sends.send(order(UNICAST, argument=SLOW, payload=b"new"))
        assert wait_until(lambda: readable(far), "the frame").endswith(b"new")
        assert readable(far) is None


def readable(sock):
    try:
        return sock.recv(FRAME_BYTES)
    except BlockingIOError:
        return None


REPORT_BYTES = 22
FIRST_CLASS = 16  # an order for class c is this plus c


class Lines:
    """The program `fates` with limited ports, in virtual time; `left` are the frames by port."""

    def __init__(self, depth=100, attached=range(510), **limits):
        self._now = 1000.0
        queues = QueueSettings(depth=depth, **limits)
        self.rig = NativeRig(config_bytes("fates"), queues, attached, clock=self._now)
        self.left = []

    def run(self, frame):
        """Take a frame; return the ports and sizes of those that leave at once."""
        return self._note(self.rig.run(1, frame))

    def serve(self, seconds):
        """Return the ports and sizes of the frames that leave after some seconds."""
        self._now += seconds
        self.due = self.rig.engine.switch.call("switch_tick", self._now)
        return self._note(self.rig.captured())

    def _note(self, frames):
        self.left += frames
        return [(port, len(frame)) for port, frame in frames]


def test_a_frame_is_charged_with_the_length_it_leaves_with():
    lines = Lines(bandwidth=8.0)  # a byte a second
    assert len(lines.run(sized())) == 1  # an idle line sends at once
    assert lines.run(sized()) == []
    assert lines.serve(99.9) == []
    assert lines.due == 1000.0 + 78 + REPORT_BYTES
    assert lines.serve(0.1) == [(2, 100)]
    lines.run(sized(TRUNCATE))
    lines.run(sized())
    assert lines.serve(100) == [(2, 8)]
    assert lines.serve(7.9) == []
    assert lines.serve(0.1) == [(2, 100)]


def test_a_packet_that_egress_drops_or_recirculates_costs_no_time():
    lines = Lines(bandwidth=8.0)
    lines.run(sized())
    for egress in (1, 4, 0):
        lines.run(sized(egress=egress))
    assert lines.serve(100) == [(2, 100)]
    assert (lines.rig.counts.egress_drops, lines.rig.counts.recirculated) == (1, 1)


def test_a_port_that_nothing_is_attached_to_is_not_limited():
    lines = Lines(attached=[2], bandwidth=8.0)
    for _ in range(5):
        lines.run(sized())
        lines.run(sized(UNICAST, port=300))
        lines.run(sized(UNICAST, port=300, egress=4))
    assert lines.rig.counts.unattached == {300: 10}
    assert lines.rig.counts.recirculated == 10
    assert lines.rig.engine.length(2) == 4


def test_higher_classes_leave_first_and_have_queues_of_their_own():
    def ordered(of_class, payload=b""):
        return bytes([FIRST_CLASS + of_class, 0, 0, 0, 0, 2]) + payload

    lines = Lines(depth=2, bandwidth=8.0)
    for of_class, payload in zip((0, 0, 0, 2, 1, 2, 7), b"abcxpy!", strict=True):
        lines.run(ordered(of_class, bytes([payload])))
    for _ in range(500):
        lines.serve(1)
    # The first one was alone. Each of the others tells how many of its class it found.
    left = [(frame[28:], queue_depth(frame)) for _, frame in lines.left]
    assert left == [(b"a", 0), (b"!", 0), (b"x", 0), (b"y", 1), (b"p", 0), (b"b", 0), (b"c", 1)]
    assert lines.rig.counts.tail_drops == {}
    lines = Lines(depth=2, bandwidth=8.0)
    for of_class in (0, 0, 0, 0, 1, 1, 1):
        lines.run(ordered(of_class))
    assert lines.rig.counts.tail_drops == {2: 2}


SIZE = 1000


@pytest.mark.parametrize(
    ("high", "low", "least", "most"),
    [(1, 0, 0.06, 0.07), (2, 1, 0.06, 0.07), (2, 0, 0.06, 0.07), (3, 2, 0.9, 0.92)],
)
def test_a_flood_of_a_higher_class_leaves_lower_ones_their_share(high, low, least, most):
    lines = Lines(depth=1000, bandwidth=8.0 * SIZE)
    for of_class in (low, high):
        body = bytes([of_class]) + bytes(SIZE - REPORT_BYTES - 7)
        for _ in range(600):
            lines.run(bytes([FIRST_CLASS + of_class, 0, 0, 0, 0, 2]) + body)
    for _ in range(500):
        lines.serve(1)
    # A sixteenth, or ten elevenths. The first one was alone; up to 23 kB may have been saved.
    classes = [frame[28] for _, frame in lines.left[30:500]]
    assert {len(frame) for _, frame in lines.left} == {SIZE}
    assert least <= classes.count(low) / len(classes) <= most


def test_ports_with_equal_lines_take_turns():
    lines = Lines(bandwidth=8.0)
    lines.rig.state.set_group(1, tuple(Replica(port, 1) for port in (4, 4, 4, 5, 6, 6, 5, 5, 6)))
    assert sorted(port for port, _ in lines.run(sized(MULTICAST))) == [4, 5, 6]
    # Even with several frames due per port, ports take turns.
    assert [port for port, _ in lines.serve(200)] == [4, 5, 6, 4, 5, 6]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2000)), max_size=60))
def test_each_line_sends_its_packets_in_order_and_never_too_early(packets):
    lines = Lines(attached=range(3), bandwidth=8.0)
    for number, (port, size) in enumerate(packets):
        lines.run(sized(UNICAST, port, payload=bytes([number]) + bytes(size)))
    passed, free = 0.0, dict.fromkeys(range(3), 0.0)
    begun = len(lines.left)
    for port, frame in lines.left:
        free[port] += len(frame)
    while lines.serve(0) or lines.due > 0:
        for port, frame in lines.left[begun:]:
            assert passed >= free[port]
            free[port] = max(free[port], passed) + len(frame)
        begun = len(lines.left)
        step = max(0.0, lines.due - 1000.0 - passed)
        passed += step
        lines.serve(step)
    for port in range(3):
        sent = [frame[28] for used, frame in lines.left if used == port]
        assert sent == [number for number, (used, _) in enumerate(packets) if used == port]
    assert lines.rig.counts.unattached[3] == sum(used == 3 for used, _ in packets)


def test_with_two_limits_the_slower_one_counts():
    lines = Lines(attached=[2], rate=0.01, bandwidth=8.0)
    times = [0 for size in (4, 400, 4) for _ in lines.run(sized(payload=bytes(size)))]
    for now in range(1, 700):
        times += [now for _ in lines.serve(1)]
    assert times == [0, 100, 100 + 400 + 6 + REPORT_BYTES]


def test_bandwidth_holds_in_a_running_switch_that_sleeps_meanwhile():
    bandwidth, packets = 1e6, 50
    with udp_socket() as receiver:
        specs = {2: UdpSpec(free_address(), receiver.getsockname())}
        with SoftSwitch(specs, grpc=None, queues=QueueSettings(bandwidth=bandwidth)) as switch:
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
