"""Ports: UDP sockets and packet sockets, end to end, and ports with a shaped interface."""

import contextlib
import socket
import struct
import subprocess
import time

import pytest

from bench.errors import BenchError
from bench.testbeds.namespace import Namespace
from bench.testbeds.veth import make_pair
from switchgnn.softswitch import Backend, EthernetSpec, PortError, SoftSwitch, UdpSpec
from switchgnn.softswitch.base.ports import find_interface, parse_port
from tests.softswitch.harness import config_bytes, free_address, udp_socket
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

_SO_RCVBUFFORCE = 33


def shape(interface):
    command = ["tc", "qdisc", "replace", "dev", interface, "root", "tbf"]
    settings = ["rate", "300kbit", "burst", "2kb", "limit", "4mb"]
    subprocess.run([*command, *settings], capture_output=True, check=True)


@contextlib.contextmanager
def wires(*names):
    """Wires in a namespace, from NAME0 to sockets at NAME1."""
    with Namespace(), contextlib.ExitStack() as stack:
        ends = []
        for name in names:
            make_pair(f"{name}0", f"{name}1")
            sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 8 << 20)
            sock.bind((f"{name}1", 3))
            sock.settimeout(seconds_here(5))
            ends.append(sock)
        yield ends


def _may_make_wires():
    try:
        with wires("one"):
            shape("one0")
    except (BenchError, OSError, subprocess.CalledProcessError):
        return False
    return True


needs_wires = pytest.mark.skipif(
    not _may_make_wires(), reason="needs the right to make and shape network interfaces"
)
_UDP_SEGMENT = 103
FRAME = bytes([2, 0, 0, 0, 0, 3]) + b"x" * 60  # orders: unicast to port 3


@pytest.fixture
def udp_switch():
    with udp_socket() as one, udp_socket() as three:
        specs = {
            1: UdpSpec(free_address(), one.getsockname()),
            3: UdpSpec(free_address(), three.getsockname()),
        }
        with SoftSwitch(specs, grpc=None) as switch:
            one.connect(specs[1].local)
            three.connect(specs[3].local)
            yield switch, one, three


REPORT_BYTES = 22  # added by the program
LENGTHS = {
    "equal": [128] * 200,
    "shorter behind": ([128] * 5 + [60]) * 30,
    "mixed": [(60, 128, 128, 1400, 9000)[n * n % 5] for n in range(100)],
}


def carried(udp_switch, lengths, send):
    """Check that frames of these lengths arrive one by one and in order."""
    switch, one, three = udp_switch
    switch.load(config_bytes("fates"))
    frames = [FRAME[:6] + bytes([n]) * (length - 6) for n, length in enumerate(lengths)]
    switch.call(lambda: send(one, frames))
    received = [three.recv(10_000) for _ in frames]
    assert received[0][:2] == FRAME[:2]
    assert [(len(frame) - REPORT_BYTES, frame[-1]) for frame in received] == [
        (len(frame), frame[-1]) for frame in frames
    ]
    wait_until(lambda: switch.counts.sent[3] == len(frames), "the last count")
    assert switch.counts.received[1] == len(frames)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_udp_ports_keep_frames_apart_that_leave_together(udp_switch, lengths):
    carried(udp_switch, lengths, lambda one, frames: [one.send(frame) for frame in frames])


def test_frames_that_come_as_one_message_are_many(udp_switch):
    """The kernel segments the message before or after delivery."""
    segment = [(socket.SOL_UDP, _UDP_SEGMENT, struct.pack("H", 60))]
    carried(
        udp_switch, [60] * 40 + [14], lambda one, frames: one.sendmsg([b"".join(frames)], segment)
    )


def test_frames_before_a_program_are_counted(udp_switch):
    switch, one, _ = udp_switch
    one.send(FRAME)
    wait_until(lambda: switch.counts.without_program == 1, "the frame")


def test_a_closed_peer_does_not_stop_the_switch(udp_switch):
    switch, one, three = udp_switch
    switch.load(config_bytes("fates"))
    three.close()
    for _ in range(5):
        one.send(FRAME)
        one.send(bytes([2, 0, 0, 0, 0, 1]) + b"back")
        assert one.recv(2000)[-4:] == b"back"
    wait_until(lambda: switch.counts.received[1] == 10, "all frames")
    wait_until(lambda: switch.counts.sent[3] + switch.counts.send_errors[3] == 5, "their counts")


def test_a_packet_that_recirculates_for_ever_leaves_the_switch_usable(udp_switch):
    switch, one, three = udp_switch
    # It starts with fresh state.
    switch.load(config_bytes("tables")).registers["Enter.cells"].cells[0] = 9
    assert switch.load(config_bytes("tables")).registers["Enter.cells"].cells[0] == 0
    switch.load(config_bytes("fates"))
    one.send(bytes([5, 0, 4, 0, 0, 0]))
    wait_until(lambda: switch.call(lambda: switch.counts.recirculated) > 1000, "many rounds")
    one.send(FRAME)
    assert three.recv(2000)[:2] == FRAME[:2]
    switch.load(config_bytes("fates"))
    rounds = switch.counts.recirculated
    switch.call(lambda: None)
    assert switch.counts.recirculated == rounds


def test_an_error_loses_one_packet_and_not_the_switch(udp_switch, monkeypatch, backend):
    if backend is Backend.NATIVE:
        pytest.skip("native code has no exceptions")
    switch, one, three = udp_switch
    monkeypatch.setattr(switch.load(config_bytes("fates")), "groups", None)
    one.send(bytes([3, 0, 0, 0, 0, 0]))
    one.send(FRAME)
    assert three.recv(2000)[:2] == FRAME[:2]
    assert switch.counts.failures == 1


def test_start_and_stop_may_be_repeated():
    switch = SoftSwitch(grpc="127.0.0.1:0")
    switch.start()
    switch.start()
    assert not switch.grpc_address.endswith(":0")
    switch.stop()
    switch.stop()
    with switch:
        assert not switch.grpc_address.endswith(":0")


def test_a_failed_start_is_one_sentence_and_releases_what_it_took():
    address = free_address()
    with udp_socket() as sock:
        specs = {1: UdpSpec(address, free_address()), 2: UdpSpec(sock.getsockname(), address)}
        with pytest.raises(PortError, match="cannot be used"):
            SoftSwitch(specs, grpc=None).start()
    with SoftSwitch({1: UdpSpec(address, free_address())}, grpc=None):
        pass
    with pytest.raises(PortError, match=r"no-such-if0|CAP_NET_RAW"):
        SoftSwitch({1: EthernetSpec("no-such-if0")}, grpc=None).start()


@pytest.mark.parametrize(
    "text", ["", "1", "1=", "x=eth:a", "1=eth:", "511=eth:a", "-1=eth:a", "1=udp:1:2:3", "1=tap:a"]
)
def test_port_descriptions(text):
    assert parse_port("1=eth:s1-eth1") == (1, EthernetSpec("s1-eth1"))
    expected = UdpSpec(("127.0.0.1", 4001), ("127.0.0.1", 5001))
    assert parse_port("2=udp:127.0.0.1:4001:127.0.0.1:5001") == (2, expected)
    with pytest.raises(PortError):
        parse_port(text)


@needs_wires
def test_ethernet_ports_carry_frames_and_ignore_their_own():
    with wires("one", "three") as (sender, receiver):
        specs = {1: EthernetSpec("one0"), 3: EthernetSpec("three0")}
        with SoftSwitch(specs, grpc=None) as switch:
            switch.load(config_bytes("fates"))
            for number in range(50):
                sender.send(FRAME + bytes([number]))
                frame = receiver.recv(4000)
                assert (frame[:2], frame[-1]) == (FRAME[:2], number)
            # Frames sent by port 3 are not received there.
            assert switch.call(lambda: switch.counts.sent) == {3: 50}
            big = FRAME + b"y" * (1500 - len(FRAME) - 60)
            sender.send(big)
            assert len(receiver.recv(4000)) >= len(big)


def test_there_is_no_port_above_510():
    with SoftSwitch(grpc=None) as switch:
        switch.load(config_bytes("fates"))
        for port in (-1, 511, 1 << 20):
            with pytest.raises(PortError, match=f"There is no port {port}"):
                switch.inject(port, FRAME)


@pytest.mark.whole
@needs_wires
def test_a_shaped_port_loses_nothing_and_in_native_code_delays_nobody(backend):
    frames, slow, quick = 60, 3, 4
    with wires("slow", "quick") as ends:
        for name, queues in (("quick0", False), ("slow0", True)):
            if queues:
                shape(name)
            assert find_interface(name).queues is queues
        with SoftSwitch(
            {slow: EthernetSpec("slow0"), quick: EthernetSpec("quick0")}, grpc=None
        ) as switch:
            switch.load(config_bytes("fates"))
            begin, used = time.monotonic(), time.process_time()
            for number in range(frames):
                for port in (slow, quick):
                    switch.inject(1, bytes([2, 0, 0, 0, 0, port, number]) + bytes(971))
            assert switch.counts.sent[quick] == frames  # though the other port has just begun
            got = [[end.recv(2000) for _ in range(frames)] for end in ends]
            took, used = time.monotonic() - begin, time.process_time() - used
            assert switch.call(lambda: switch.counts.sent) == {slow: frames, quick: frames}
            assert switch.counts.tail_drops == {}
    assert [[frame[28] for frame in each] for each in got] == [list(range(frames))] * 2
    assert took > 1.2
    assert used < took / 2
    if backend is Backend.PYTHON:
        return  # The interpreter waits for room; it has no queues.
    # The program saw most of the queue, the kernel keeps little.
    depths = [max(int.from_bytes(frame[24:28], "big") for frame in each) for each in got]
    assert depths[0] >= frames * 2 // 3
    assert depths[1] == 0
