"""Frames with something around them are those without it; built byte by byte from the formats."""

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.capture.files import CaptureStream, read_frames
from switchgnn.capture.lines import line_of
from switchgnn.capture.packet import Captured, decode, frames_in, usual_names
from switchgnn.host.wire.header import Kind
from tests.capture.drawn import control, direct_packets, feature, packets
from tests.capture.written import enhanced, interface, pcap, section

NAMES = usual_names()
DONE, ADVANCE = control(Kind.DONE, block_id=7), control(Kind.ADVANCE, down=True, block_id=7)
SLL, SLL2 = 113, 276


def lines(frames):
    found = [decode(each, NAMES) for frame in frames for each in frames_in(frame)]
    return [None if each is None else line_of(each, 0) for each in found]


def captured(frame, size=None):
    return Captured(0, "l", frame, size or len(frame))


def as_sll(frame):
    """A frame as `tcpdump -i any` wrote it until 2020."""
    return struct.pack("!HHH6s2x", 4, 1, 6, frame[6:12]) + frame[12:]


def as_sll2(frame):
    """The same since then: https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html"""
    return struct.pack("!2s2xIHBB6s2x", frame[12:14], 3, 1, 0, 6, frame[6:12]) + frame[14:]


def of_pcapng(frames, link_type):
    blocks = [enhanced("<", 0, 0, frame) for _, frame in frames]
    return b"".join((section(), interface(link_type=link_type), *blocks))


@pytest.mark.parametrize("file", [lambda frames, kind: pcap(frames, link_type=kind), of_pcapng])
@pytest.mark.parametrize(("link_type", "cooked"), [(SLL, as_sll), (SLL2, as_sll2)])
@given(drawn=st.one_of(packets(), direct_packets()))
def test_a_cooked_capture(file, link_type, cooked, drawn):
    _, frame = drawn
    content = file([(0, cooked(frame)), (0, cooked(frame)[:9])], link_type)
    first, short = read_frames(CaptureStream(io.BytesIO(content), "it"), "l")
    assert lines([first]) == lines([captured(frame)])
    assert first.size == len(frame)
    assert lines([short]) == [None]


def test_a_receiver_of_another_network_has_its_own_address():
    packet = as_sll(DONE)[:32] + bytes([192, 0, 2, 1]) + as_sll(DONE)[36:]
    source = CaptureStream(io.BytesIO(pcap([(0, packet)], link_type=SLL)), "it")
    assert lines(read_frames(source, "l"))[0].startswith("0.000000 w0 > 192.0.2.1 done")


@pytest.mark.parametrize("tags", [b"\x81\x00\x00\x05", b"\x88\xa8\x20\x01\x81\x00\x00\x05"])
@pytest.mark.parametrize("frame", [DONE, feature(), bytes(60)])
def test_a_tagged_frame(tags, frame):
    tagged = frame[:12] + tags + frame[12:]
    assert lines([captured(tagged)]) == lines([captured(frame)])
    [shortened] = frames_in(captured(tagged[:70], len(tagged)))
    assert shortened.size == len(frame)


def in_udp(payload, options=b""):
    """A datagram over loopback, where Ethernet has no addresses."""
    length = 20 + len(options) + 8 + len(payload)
    head = struct.pack("!BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, length, 1, 0x4000, 64, 17, 0,
                       bytes([127, 1, 2, 3]), bytes([127, 1, 2, 3]))  # fmt: skip
    udp = struct.pack("!HHHH", 40000, 40001, 8 + len(payload), 0)
    return bytes(12) + b"\x08\x00" + head + options + udp + payload


@pytest.mark.parametrize("options", [b"", bytes(8)])
@pytest.mark.parametrize("frames", [[DONE], [feature(), feature(1), DONE], [ADVANCE] * 40], ids=len)
def test_frames_in_a_datagram(options, frames):
    datagram = in_udp(b"".join(frames), options)
    assert lines([captured(datagram)]) == lines(map(captured, frames))
    # With `tcpdump -s` the last one is cut; its length is still that of the whole.
    *_, last = frames_in(captured(datagram[:-9], len(datagram)))
    assert (last.frame, last.size) == (frames[-1][:-9], len(frames[-1]))


@pytest.mark.parametrize("payload", [b"", b"dns", bytes(200), in_udp(DONE), DONE[:20]])
def test_a_datagram_of_others_is_one_frame(payload):
    assert list(frames_in(captured(in_udp(payload)))) == [captured(in_udp(payload))]


@given(st.data())
def test_whatever_is_captured_is_taken_apart(data):
    """Lengths that lie neither fail nor go on for ever."""
    content = bytearray(in_udp(DONE + feature() + DONE))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(12, len(content) - 1))] = data.draw(st.integers(0, 255))
    kept = data.draw(st.integers(0, len(content)))
    found = list(frames_in(captured(bytes(content[:kept]), len(content))))
    assert 1 <= len(found) <= 1 + kept // 14
    assert sum(len(each.frame) for each in found) <= kept
    lines(found)


def test_a_length_that_lies_reaches_to_the_end_of_the_datagram():
    long = DONE[:16] + b"\xff\xff" + DONE[18:]
    [found] = frames_in(captured(in_udp(long)))
    assert (found.frame, found.size) == (long, len(long))
