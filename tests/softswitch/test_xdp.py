# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ports over AF_XDP sockets: the frames of packet sockets, and nothing attached afterwards."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest

from switchgnn.softswitch import Backend, EthernetSpec, PortError, SoftSwitch, XdpSpec
from switchgnn.softswitch.native import xdp
from switchgnn.softswitch.ports import open_ports, parse_port
from tests.softswitch.harness import config_bytes
from tests.softswitch.namespace import make_wire, network_namespace, shape
from tests.support.native import needs_compiler
from tests.support.waiting import wait_until

INTO, OUT_OF = 1, 3
TAG = b"\x81\x00\x00\x05"


def _may_attach():
    if xdp.xdp_missing():
        return False
    with network_namespace() as entered:
        if not entered or not make_wire("one0", "one1"):
            return False
        try:
            xdp.open_xdp(1, XdpSpec("one0")).close()
        except PortError:
            return False
    return True


needs_xdp = pytest.mark.skipif(
    os.geteuid() != 0 or not _may_attach(), reason="needs root, and AF_XDP on veth"
)


@contextmanager
def wires():
    """Two wires in a namespace of their own, and sockets at their far ends."""
    with network_namespace(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as one:
        assert make_wire("one0", "one1")
        assert make_wire("two0", "two1")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as two:
            one.bind(("one1", 3))
            two.bind(("two1", 3))
            two.setblocking(False)
            yield one, two


def order(length, payload):
    """A frame that the program `fates` sends on, with a report in front, as long as asked."""
    start = bytes([2, 0, 0, 0]) + OUT_OF.to_bytes(2, "big")
    return (start + payload).ljust(length, b".")


def next_frame(sock):
    found = []

    def come():
        try:
            found.append(sock.recv(4000))
        except BlockingIOError:
            return False
        return True

    wait_until(come, "a frame")
    return found[0]


@pytest.fixture(
    params=[
        Backend.PYTHON,
        pytest.param(
            Backend.NATIVE,
            marks=needs_compiler,
        ),
    ],
    ids=lambda each: each.value,
)
def switch_of(request):
    """Call it with a kind of port to get a switch between the two wires, to be entered."""

    def make(kind=XdpSpec):
        ports = {INTO: kind("one0"), OUT_OF: kind("two0")}
        switch = SoftSwitch(ports, grpc=None, backend=request.param)
        switch.load(config_bytes("fates"))
        return switch

    return make


@needs_xdp
def test_frames_are_those_of_packet_sockets(switch_of):
    """Short and long ones, with and without a tag; the ring is gone through more than once."""
    sizes = [14, 60, 64, 200, 1400]
    left = {}
    with wires() as (one, two):
        for kind in (EthernetSpec, XdpSpec):
            with switch_of(kind) as switch:
                got = []
                for number in range(600):
                    payload = (TAG if number % 3 else b"") + number.to_bytes(2, "big")
                    one.send(order(sizes[number % len(sizes)], payload))
                    got.append(next_frame(two))
                counts = switch.call(lambda switch=switch: switch.counts)
                left[kind] = got, counts.received, counts.sent
    assert left[XdpSpec] == left[EthernetSpec]
    assert left[XdpSpec][2] == {OUT_OF: 600}


@needs_xdp
def test_a_tag_stays_in_the_frame():
    """The far end has put it there, and so does the port."""
    with wires() as (one, two):
        ports = open_ports(
            [(INTO, XdpSpec("one0")), (OUT_OF, XdpSpec("two0"))], open_xdp=xdp.open_xdp
        )
        frame = bytes(12) + TAG + b"\x08\x00" + bytes(1500)
        try:
            one.send(frame)
            taken = []

            def come():
                try:
                    taken.append(ports[INTO].receive(ports[INTO].frame_bytes))
                except BlockingIOError:
                    return False
                return True

            wait_until(come, "a frame")
            assert taken == [frame]
            assert ports[OUT_OF].send(frame)
            two.setsockopt(263, 8, 1)
            assert len(next_frame(two)) in {len(frame), len(frame) - len(TAG)}
        finally:
            for port in ports.values():
                port.close()


@needs_xdp
def test_what_is_too_long_or_too_short_is_an_error(switch_of):
    """As of packet sockets: a report of 28 bytes stands in for an order of 6."""
    with wires() as (one, two), switch_of() as switch:
        longest = 1514 - 22
        one.send(order(longest + 1, b""))
        one.send(order(longest, b""))
        assert len(next_frame(two)) == 1514
        counts = switch.call(lambda: switch.counts)
        assert (counts.send_errors, counts.sent) == ({OUT_OF: 1}, {OUT_OF: 1})


@needs_xdp
def test_an_interface_goes_down_and_comes_up_again(switch_of):
    """Many more are lost meanwhile than the ring has places for."""
    with wires() as (_, two), switch_of() as switch:
        subprocess.run(["ip", "link", "set", "two0", "down"], check=True)
        for _ in range(1200):
            switch.inject(INTO, order(60, b"lost"))
        counts = switch.call(lambda: switch.counts)
        assert (counts.send_errors, counts.sent) == ({OUT_OF: 1200}, {})
        subprocess.run(["ip", "link", "set", "two0", "up"], check=True)
        came = []

        def comes():
            switch.inject(INTO, order(60, b"good"))
            try:
                while True:
                    came.append(two.recv(4000)[28:32])
            except OSError:  # its end was down, too
                return came.count(b"good") > 3

        wait_until(comes, "frames")
        # What was in the ring when it went down, no more.
        assert came.count(b"lost") <= 32


@needs_xdp
def test_an_interface_that_is_gone_is_an_error(switch_of):
    with wires(), switch_of() as switch:
        subprocess.run(["ip", "link", "delete", "two0"], check=True)
        for _ in range(100):
            switch.inject(INTO, order(60, b""))
        assert switch.call(lambda: switch.counts.send_errors) == {OUT_OF: 100}


def attached(interface):
    told = subprocess.run(
        ["ip", "-details", "link", "show", interface], capture_output=True, text=True, check=True
    ).stdout
    return "xdp" in told.replace(interface, "")


@needs_xdp
def test_nothing_stays_attached(switch_of):
    with wires():
        with switch_of():
            assert attached("one0")
        assert not attached("one0")


@needs_xdp
@pytest.mark.whole
def test_a_switch_that_is_killed_leaves_nothing_attached(tmp_path):
    with wires():
        words = ["--grpc", f"unix:{tmp_path}/switch.sock", "--port", "1=xdp:one0"]
        with subprocess.Popen([sys.executable, "-m", "switchgnn.softswitch", *words]) as process:
            try:
                wait_until(lambda: attached("one0"), "the port")
            finally:
                process.send_signal(signal.SIGKILL)
        wait_until(lambda: not attached("one0"), "the end of the port")


@needs_xdp
def test_a_shaped_interface_is_refused():
    """The frames would go past its queue."""
    with wires():
        if not shape("one0", "1mbit"):
            pytest.skip("tc cannot shape")
        with pytest.raises(PortError, match=r"\(tbf\).*or take 1=eth:one0"):
            xdp.open_xdp(1, XdpSpec("one0"))


@needs_xdp
@pytest.mark.parametrize(
    ("change", "why"),
    [({"receive_queues": 2}, "in 2 queues"), ({"mtu": 9000}, "longer than its place")],
)
def test_what_the_rings_cannot_carry_is_refused(monkeypatch, change, why):
    real = xdp.find_interface
    monkeypatch.setattr(xdp, "find_interface", lambda name: replace(real(name), **change))
    with wires(), pytest.raises(PortError, match=why):
        xdp.open_xdp(1, XdpSpec("one0"))


@needs_xdp
def test_one_socket_has_an_interface():
    with wires():
        first = xdp.open_xdp(1, XdpSpec("one0"))
        try:
            with pytest.raises(PortError, match="the kernel refuses"):
                xdp.open_xdp(2, XdpSpec("one0"))
        finally:
            first.close()
        assert not attached("one0")


@needs_xdp
def test_an_interface_that_is_not_there_is_refused():
    with pytest.raises(PortError, match=r"nowhere0.*take 1=eth:"):
        xdp.open_xdp(1, XdpSpec("nowhere0"))


@pytest.mark.parametrize(
    ("error", "why"),
    [(PermissionError, "needs root, or CAP_NET_RAW"), (OSError, "kernel has no AF_XDP")],
)
def test_what_the_machine_lacks_is_said(monkeypatch, error, why):
    def refuse(*_):
        raise error

    monkeypatch.setattr(xdp.socket, "socket", refuse)
    with pytest.raises(PortError, match=why):
        xdp.open_xdp(1, XdpSpec("one0"))


def test_a_port_is_written_like_the_others():
    assert parse_port("7=xdp:eth0") == (7, XdpSpec("eth0"))
    with pytest.raises(PortError, match="NUMBER=xdp:INTERFACE"):
        parse_port("7=xdp:")
    with pytest.raises(PortError, match="take 'eth:'"):
        open_ports([(7, XdpSpec("eth0"))])
