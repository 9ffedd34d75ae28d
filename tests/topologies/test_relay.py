"""The relay on a cable, between two plain sockets: what it carries, loses and counts."""

import socket
from contextlib import ExitStack

import pytest

from switchgnn.capture.files import CaptureFiles
from switchgnn.host.links.recording import begin_recording
from switchgnn.topologies.fabric import FaultyCables, RelayedCable
from switchgnn.topologies.rpc_address import free_udp_addresses
from tests.support.speed import seconds_here

FRAMES = 400
SECONDS = 5.0


class Wire:
    """A socket where each switch would be, and the relay between them."""

    def __init__(self, stack, folder, faults, recordings=None):
        lower, far, near, upper = free_udp_addresses(4)
        cable = RelayedCable("l0s0", udp(far, lower), udp(near, upper))
        self.relay = FaultyCables([cable], faults, folder, recordings=recordings)
        stack.callback(self.relay.stop)
        self.relay.start()
        self.lower = stack.enter_context(end(lower, far))
        self.upper = stack.enter_context(end(upper, near))

    def pass_up(self, frames):
        return carry(self.lower, self.upper, frames)

    def pass_down(self, frames):
        return carry(self.upper, self.lower, frames)

    def counts(self):
        return self.relay.counts()["l0s0"]


def udp(here, there):
    return f"udp:{here}:{there}"


def end(here, there):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    for attach, address in ((made.bind, here), (made.connect, there)):
        host, _, port = address.partition(":")
        attach((host, int(port)))
    made.settimeout(seconds_here(SECONDS))
    return made


# No protocol of ours, so nothing happens to it: what came before it has come when it comes.
LAST = bytes(12) + b"\x08\x06" + b"last".ljust(46)


def carry(source, target, frames):
    """Send the frames, and one that nothing happens to; return what comes."""
    for frame in frames:
        source.send(frame)
    source.send(LAST)
    arrived = []
    while (frame := target.recv(2000)) != LAST:
        arrived.append(frame)
    return arrived


def packets(number=FRAMES, protocol=253):
    """Frames of an IPv4 protocol, each with its number at the end."""
    head = bytes(12) + b"\x08\x00" + bytes(9) + bytes([protocol]) + bytes(40)
    return [head + index.to_bytes(4, "big") for index in range(number)]


@pytest.fixture
def wire(tmp_path):
    with ExitStack() as stack:
        yield lambda faults, **more: Wire(stack, tmp_path, faults, **more)


def test_without_rates_it_only_counts(wire):
    made = wire("cables.loss=0")
    assert made.pass_up(packets()) == packets()
    assert made.pass_down(packets(3)) == packets(3)
    size = len(packets(1)[0])
    counts = made.counts()
    assert counts["up"] == FRAMES * size + len(LAST)
    assert counts["down"] == 3 * size + len(LAST)
    assert set(counts["faults"]["up"].values()) == {0}


def test_a_recording_has_what_the_upper_switch_sees(wire, tmp_path):
    path = tmp_path / "l 0\u2028s0.pcap"
    begin_recording(path)
    made = wire("cables.up.loss=0.5,cables.down.loss=0.5,seed=1", recordings={"l0s0": path})
    up, down = made.pass_up(packets()), made.pass_down(packets())
    assert 0 < len(up) < FRAMES and 0 < len(down) < FRAMES
    with CaptureFiles([str(path)]) as opened:
        found = [captured.frame for captured in opened]
    assert opened.damages == []
    assert found == [*up, LAST, *packets(), LAST]


def test_each_way_has_its_own_faults(wire):
    made = wire("cables.up.loss=0.5,cables.down.duplicate=0.5,seed=1")
    up, down = made.pass_up(packets()), made.pass_down(packets())
    faults = made.counts()["faults"]
    assert 0 < len(up) == FRAMES - faults["up"]["lost"] < FRAMES
    assert up == sorted(up)
    assert len(down) == FRAMES + faults["down"]["duplicated"] > FRAMES
    assert set(down) == set(packets())
    assert faults["up"]["duplicated"] == faults["down"]["lost"] == 0
    # Bytes are those of the upper switch: what reaches it, and what it sends.
    size = len(packets(1)[0])
    assert made.counts()["up"] == len(up) * size + len(LAST)
    assert made.counts()["down"] == FRAMES * size + len(LAST)


def test_frames_overtake_each_other_and_none_stays(wire):
    made = wire("cables.reorder=0.3,seed=2")
    for frame in packets():
        made.lower.send(frame)
    arrived = [made.upper.recv(2000) for _ in packets()]
    assert sorted(arrived) == packets()
    assert arrived != packets()
    assert made.counts()["faults"]["up"]["reordered"] > 0


@pytest.mark.parametrize(("protocol", "spared"), [(254, False), (6, True), (17, True)])
def test_faults_are_for_what_workers_exchange(wire, protocol, spared):
    sent = packets(protocol=protocol)
    arrived = wire("loss=0.5,duplicate=0.2,reorder=0.2,corrupt=0.2,seed=4").pass_up(sent)
    assert (arrived == sent) is spared


def test_other_faults_begin_with_other_counts(wire):
    made = wire("cables.loss=0.5,seed=5")
    first = made.pass_up(packets())
    made.relay.disturb("cables.loss=0.5,seed=6")
    assert made.counts()["faults"]["up"]["lost"] == made.counts()["up"] == 0
    assert made.pass_up(packets()) != first
    made.relay.disturb("workers.loss=0.5")
    assert made.pass_up(packets()) == packets()
