"""The packets that hosts pack by hand are those that the Scapy layers define."""

import math
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from switchgnn.host.innetwork.schedule import FeatureFrames
from switchgnn.host.scapy_host.layers import BarrierLayer as Barrier
from switchgnn.host.scapy_host.layers import Fragment, NarrowFragment, SwitchGNN
from switchgnn.host.scapy_host.layers import WaitingLayer as Waiting
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.narrow import pack_lanes
from switchgnn.host.wire.native import write_checksums
from tests.host.addresses import ADDRESSES

bits = st.booleans()
u8 = st.integers(0, 2**8 - 1)
u16 = st.integers(0, 2**16 - 1)
u24 = st.integers(0, 2**24 - 1)
u32 = st.integers(0, 2**32 - 1)
words = st.builds(
    lambda number, pool, code: number << 7 | pool << 5 | code,
    *(st.integers(0, 511), st.integers(0, 3), st.integers(0, 31)),
)


def with_possible_bits(header):
    """The header, with numbers of 32 bits if there is no body of those of its own."""
    groups = (header.fragment & 31) + 1
    possible = (0, 32, *([16] if groups > 1 else []), *([8] if groups > 2 else []))
    if header.kind in (wire.Kind.REDUCE, wire.Kind.REDUCED):
        possible = (32,)
    of_lanes = header.kind in (
        wire.Kind.FEATURE,
        wire.Kind.SUM,
        wire.Kind.REDUCE,
        wire.Kind.REDUCED,
    )
    return header._replace(bits=32) if of_lanes and header.bits not in possible else header


headers = st.builds(
    wire.Header,
    kind=st.sampled_from(wire.Kind),
    src_id=u32,
    dst_id=u32,
    block_id=u16,
    count=u16,
    is_ack=bits,
    is_fetch=bits,
    ecn=bits,
    resend=bits,
    version=st.just(wire.VERSION),
    bits=st.sampled_from((32, 16, 8, 0)),
    level=st.integers(0, 1),
    echo=bits,
    fragment=words,
    feature_group=u16,
    session=u8,
    round=u24,
).map(with_possible_bits)
# The body of a bundle of sums has places, too.
headers = headers.filter(lambda header: not wire.places_bytes(header))


SCAPY_NAMES = {"is_ack": "Is_ACK", "is_fetch": "Is_Fetch", "ecn": "ECN"}


def lanes_for(word: int, bits: int = 32):
    lane = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    lanes = 8 * ((word & 31) + 1)
    return st.lists(lane, min_size=lanes, max_size=lanes)


def body_of(header: wire.Header, data) -> tuple[bytes, object]:
    kind = header.kind
    if kind in (wire.Kind.FEATURE, wire.Kind.SUM, wire.Kind.REDUCE, wire.Kind.REDUCED):
        if header.bits == 0:
            return b"", None
        lanes = data.draw(lanes_for(header.fragment, header.bits))
        if header.bits < 32:
            body = pack_lanes(np.array([lanes], dtype=np.int32), header.bits).tobytes()
            return body, NarrowFragment(lanes=lanes)
        return np.array(lanes, dtype=">i4").tobytes(), Fragment(lanes=lanes)
    if kind not in (wire.Kind.DONE, wire.Kind.ADVANCE, wire.Kind.WAITING, wire.Kind.REDUCING):
        return b"", None
    magnitude, plan, number, workers = (
        data.draw(values) for values in (u32, u32, u32, st.integers(0, 2**128 - 1))
    )
    layer = Barrier(magnitude=magnitude, plan=plan, round=number, workers=workers)
    heartbeats = None
    if kind in (wire.Kind.WAITING, wire.Kind.REDUCING):
        heartbeats = data.draw(st.integers(0, 2**128 - 1))
        layer = layer / Waiting(heartbeats=heartbeats)
    return wire.BarrierBody(magnitude, plan, number, workers, heartbeats).pack(), layer


def scapy_frame(header: wire.Header, body: object) -> bytes:
    fields = {SCAPY_NAMES.get(name, name.capitalize()): n for name, n in header._asdict().items()}
    word = header.fragment
    fields |= {"Fragment": word >> 7, "Pool": word >> 5 & 3, "Width": word & 31}
    fields |= {"Bits": (32, 16, 8, 0).index(header.bits)}
    layer = SwitchGNN(**fields)
    # CS6 where there are no numbers, CS1 for all-reduces, and ECN-capable.
    tos = {wire.Kind.REDUCE: 0x22, wire.Kind.REDUCED: 0x22}.get(header.kind)
    tos = tos or (2 if header.kind in wire.LANE_KINDS else 0xC2)
    ip = IP(src=ADDRESSES.worker.ip, dst=ADDRESSES.switch.ip, id=0, ttl=64, tos=tos)
    frame = Ether(src=ADDRESSES.worker.mac, dst=ADDRESSES.switch.mac) / ip / layer
    return bytes(frame / body if body is not None else frame)


@given(headers, st.data())
def test_packed_frames_are_scapys_and_unpacked_again(header, data):
    body, layer = body_of(header, data)
    frame = ADDRESSES.frame(header.pack(body))
    assert frame == scapy_frame(header, layer)
    assert wire.unpack_header(frame) == header
    assert wire.unpack_header(frame + data.draw(st.binary(max_size=40))) == header
    if layer is not None:
        again = Ether(frame)[SwitchGNN][type(layer)]
        assert bytes(again) == body
        if isinstance(layer, NarrowFragment):
            assert again.lanes == layer.lanes
    if header.kind in (wire.Kind.DONE, wire.Kind.ADVANCE, wire.Kind.WAITING, wire.Kind.REDUCING):
        assert wire.BarrierBody.unpack(frame, header.kind).pack() == body


@given(headers, st.data())
def test_a_flipped_bit_is_noticed(header, data):
    body, _ = body_of(header, data)
    frame = bytearray(ADDRESSES.frame(header.pack(body)))
    bit = data.draw(st.integers(wire.HEADER_AT * 8, len(frame) * 8 - 1))
    frame[bit // 8] ^= 0x80 >> bit % 8
    assert wire.unpack_header(frame) is None


@pytest.mark.parametrize("size", [*range(60, 240, 4), 316, 572, 1084, 1500, 9000])
def test_native_checksums_are_zlibs(size):
    frames = np.random.default_rng(size).integers(0, 256, (3, size), dtype=np.uint8)
    write_checksums(frames)
    for frame in map(bytes, frames):
        expected = zlib.crc32(frame[60:], zlib.crc32(frame[34:56]))
        assert int.from_bytes(frame[56:60], "big") == expected


def test_a_short_frame_is_refused():
    frame = ADDRESSES.frame(wire.Header(kind=wire.Kind.FEATURE, fragment=3).pack(bytes(128)))
    assert wire.unpack_header(frame) is not None
    assert all(wire.unpack_header(frame[:size]) is None for size in range(len(frame)))


@pytest.mark.parametrize("bits", [32, 16, 8, 0])
@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 8, 30, 31])
@pytest.mark.parametrize(
    "kind", [wire.Kind.FEATURE, wire.Kind.SUM, wire.Kind.REDUCE, wire.Kind.REDUCED]
)
def test_a_frame_has_the_bytes_that_its_bits_say(kind, code, bits):
    size = 32 * math.ceil((code + 1) * bits / 32)
    frame = ADDRESSES.frame(wire.Header(kind=kind, fragment=code, bits=bits).pack(bytes(size)))
    least = {32: 0, 16: 1, 8: 2, 0: 0}
    exists = bits == 32 if kind in (wire.Kind.REDUCE, wire.Kind.REDUCED) else code >= least[bits]
    heard = wire.unpack_header(frame)
    assert (heard is not None) == exists
    if heard is not None:
        assert len(frame) == 60 + size
        assert wire.unpack_header(frame + bytes(18)) == heard, "padding"
        assert wire.unpack_header(frame[:-1]) is None


def test_other_traffic_is_refused():
    assert wire.unpack_header(bytes(Ether() / IP(proto=6) / bytes(200))) is None


@given(
    st.dictionaries(u32, st.integers(1, 2**16 - 2), min_size=1, max_size=9),
    st.integers(1, 2**16 - 1),
    st.integers(0, 2**16 - 1),
    st.integers(1, 2**24 - 1),
    words,
    st.integers(1, 5),
    st.data(),
)
def test_feature_frames_are_scapys(sources, block, session, number, fragment, group_size, data):
    lanes = [data.draw(lanes_for(fragment)) for _ in sources]
    ids, counts = np.array(list(sources), dtype=np.uint32), np.array(list(sources.values()))
    frames = FeatureFrames(ADDRESSES, block, ids, group_size, counts, session=session)
    frames.fill(7, fragment ^ 8, np.full_like(lanes, -7, dtype=np.int32))
    rows = frames.fill(number, fragment, np.array(lanes, dtype=np.int32))
    for index, (source, count) in enumerate(sources.items()):
        echo = (index + 1) % group_size == 0 or index == len(sources) - 1
        header = wire.Header(
            kind=wire.Kind.FEATURE,
            src_id=source,
            block_id=block,
            count=count,
            fragment=fragment,
            feature_group=index // group_size,
            session=session & wire.SESSION_MASK,
            round=number,
            echo=echo,
        )
        assert bytes(rows.frame(index)) == scapy_frame(header, Fragment(lanes=lanes[index]))
