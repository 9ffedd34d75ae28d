"""Decoded packets equal their sources and the Scapy layers, whatever is around the frames."""

import io
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.l2 import Ether

from switchgnn.capture.files import CaptureStream, read_frames
from switchgnn.capture.lines import description, line_of, object_of
from switchgnn.capture.packet import Captured, decode, frames_in, usual_names
from switchgnn.host.direct.frames import unpack
from switchgnn.host.scapy_host.layers import SwitchGNN
from switchgnn.host.wire.header import BODY_AT, HEADER_AT, BarrierBody, Header, Kind, unpack_header
from tests.capture.drawn import (
    SWITCH,
    WORKERS,
    control,
    direct_packets,
    feature,
    flipped,
    frame_of,
    packets,
)
from tests.capture.written import enhanced, interface, pcap, section

NAMES = usual_names()


def decoded(frame, size=None):
    return decode(Captured(0, "w0", frame, size or len(frame)), NAMES)


@given(packets())
def test_the_header_is_what_was_sent(drawn):
    header, frame = drawn
    packet = decoded(frame)
    assert packet.problem is None and not packet.cut and not packet.direct
    assert packet.parsed.header == header
    has_body = header.kind in (Kind.DONE, Kind.ADVANCE, Kind.WAITING, Kind.REDUCING)
    assert packet.body == (BarrierBody.unpack(frame, header.kind) if has_body else None)


@given(packets())
def test_scapy_says_the_same(drawn):
    _, frame = drawn
    told, layer = object_of(decoded(frame)), Ether(frame)[SwitchGNN]
    told |= {"kind": Kind[told["kind"].upper()], "bits": (32, 16, 8, 0).index(told["bits"])}
    for each in SwitchGNN.fields_desc:
        assert int(told[each.name.lower()]) == layer.getfieldval(each.name), each.name


@given(packets(), st.integers(0, 2**16))
def test_it_is_sound_for_us_when_it_is_for_workers(drawn, bit):
    frame = flipped(drawn[1], bit)
    for each in (frame, drawn[1]):
        assert (decoded(each).problem is None) == (unpack_header(each) is not None)
    # CRC-32 detects every single bit.
    assert decoded(frame).problem is not None
    assert "UNSOUND" in description(decoded(frame))


@given(direct_packets(), st.integers(0, 2**16))
def test_the_same_holds_between_hosts(drawn, bit):
    for frame in (drawn[1], flipped(drawn[1], bit)):
        packet = decoded(frame)
        receiver = frame[HEADER_AT + 9]
        heard = unpack(memoryview(frame), receiver)
        assert packet.direct
        assert (packet.problem is None) == (heard is not None)
        if heard is not None:
            header = packet.parsed.header
            assert (heard.number, heard.tag) == (header.src_id, header.dst_id)
            assert f"from {heard.sender} to {receiver}" in description(packet)
            assert f"round {heard.round} " in description(packet)
            told = object_of(packet)
            assert (told["fragment"], told["width"]) == (heard.question, None)
            assert f"fragment {heard.question} group" in description(packet)


@given(packets(), st.integers(0, 200))
def test_a_part_of_a_packet_is_no_lie(drawn, kept):
    """Truncated packets may be valid; their captured fields are decoded."""
    _, frame = drawn
    packet = decoded(frame[:kept], len(frame))
    whole = decoded(frame)
    if packet is None:
        assert kept <= 23
        return
    assert packet.problem is None
    assert packet.cut == (kept < len(frame))
    assert packet.parsed == (whole.parsed if kept >= BODY_AT else None)


@given(st.binary(max_size=250), st.integers(0, 300))
def test_anything_may_come(frame, more):
    for each in (frame, feature()[:HEADER_AT] + frame, feature()[:20] + frame):
        packet = decode(Captured(0, "x", each, len(each) + more), NAMES)
        if packet is not None:
            line_of(packet, 5)
            json.dumps(object_of(packet))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({HEADER_AT + 13: 0x10}, "version 1, not 5"),
        ({HEADER_AT + 12: 0x0E}, "kind 14 is not known here"),
        ({HEADER_AT + 13: 0x58, HEADER_AT + 15: 1}, "8 bits are not known here for 16 lanes"),
        ({HEADER_AT + 3: 9}, "checksum 0x"),
        ({20: 0x20}, "a fragment of IPv4"),
        ({14: 0x46}, "IPv4 options before it"),
    ],
)
def test_why_it_is_not_sound(changes, words):
    frame = bytearray(feature(src_id=17))
    for offset, value in changes.items():
        frame[offset] = value
    assert words in description(decoded(bytes(frame)))


def test_a_packet_that_is_too_short():
    assert "short: 127 bytes of a body of 128" in description(decoded(feature()[:-1]))
    assert "short: 25 bytes of a header of 26" in description(decoded(feature()[: BODY_AT - 1]))
    frame = frame_of(
        Header(kind=Kind.SUM, fragment=1 << 7 | 2 << 5 | 31), bytes(1024), SWITCH, WORKERS[0]
    )
    assert "fragment 1 pool 2 lanes 256" in description(decoded(frame))
    assert "short: 1023 bytes of a body of 1024" in description(decoded(frame[:-1]))


def test_others_are_none_of_ours():
    tcp = bytearray(feature())
    tcp[23] = 6
    arp = bytearray(feature())
    arp[12:14] = b"\x08\x06"
    for frame in (bytes(tcp), bytes(arp), b"", bytes(14)):
        assert decoded(frame) is None


def test_the_line_of_a_packet():
    frame = feature(1, src_id=17, block_id=3, round=5, feature_group=2, echo=True)
    assert line_of(decode(Captured(2_000_001_600, "w1", frame, len(frame)), NAMES), 10**9) == (
        "1.000002 w1 > switch feature session 1 round 5 block 3 fragment 0 lanes 32 "
        "group 2 src 17 dst 0 count 1 level 0 [echo]"
    )


def test_the_lines_of_an_all_reduce():
    header = Header(
        kind=Kind.REDUCE,
        src_id=2,
        block_id=9,
        count=1,
        fragment=31,
        feature_group=130,
        session=1,
        round=3,
    )
    frame = frame_of(header, bytes(1024), WORKERS[2], SWITCH)
    number = 3 * 2**16 + 9
    words = f"session 1 number {number} lanes 256 code 130 src 2 count 1"
    assert description(decoded(frame)) == f"reduce {words}"
    assert object_of(decoded(frame))["number"] == number
    body = BarrierBody(0x12, 0xAB, 7, 0b101, 0b10).pack()
    answer = header._replace(kind=Kind.REDUCING, feature_group=0, count=512, resend=True)
    packet = decoded(frame_of(answer, body, SWITCH, WORKERS[2]))
    newest = 0x12 * 2**32 + 7
    assert description(packet) == (
        f"reducing session 1 number {number} lanes 256 code 0 src 2 count 512 [resend] "
        f"newest {newest} plan 000000ab workers 0,2 heartbeats 1"
    )
    assert object_of(packet)["body"] == {
        "newest": newest, "plan": 0xAB, "workers": [0, 2], "heartbeats": [1],
    }  # fmt: skip


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
