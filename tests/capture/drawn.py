"""Random valid packets of all kinds, with their headers."""

import math

from hypothesis import strategies as st

from switchgnn.base.network import star_network
from switchgnn.host.direct.frames import PROTOCOL as DIRECT
from switchgnn.host.wire.addresses import ipv4_envelope
from switchgnn.host.wire.header import HEADER_AT, PROTOCOL, SUM_BUNDLES, BarrierBody, Header, Kind
from tests.host.wire.test_header import headers, u32, with_possible_bits

NETWORK = star_network(4)
SWITCH = NETWORK.switch
WORKERS = tuple(neighbour.station for neighbour in NETWORK.neighbours)
bits = st.integers(0, 2**128 - 1)
numbers_of_bytes = st.one_of(st.integers(1, 40), st.integers(1, 2239)).map(lambda lanes: 4 * lanes)
rows = st.binary(min_size=128, max_size=128)
packed_rows = st.builds(
    lambda some, size: (some * size)[:size], st.binary(min_size=7, max_size=40), numbers_of_bytes
)


WORD = 3


def bodies(header):
    kind = header.kind
    if kind in (Kind.FEATURE, Kind.SUM, Kind.REDUCE, Kind.REDUCED):
        size = 32 * math.ceil(((header.fragment & 31) + 1) * header.bits / 32)
        if kind is Kind.SUM and header.dst_id >= SUM_BUNDLES:
            size += 16
        return st.binary(min_size=32, max_size=32).map(lambda some: (some * 33)[:size])
    if kind not in (Kind.DONE, Kind.ADVANCE, Kind.WAITING, Kind.REDUCING):
        return st.just(b"")
    heartbeats = bits if kind in (Kind.WAITING, Kind.REDUCING) else st.none()
    return st.builds(BarrierBody, u32, u32, u32, bits, heartbeats).map(BarrierBody.pack)


@st.composite
def packets(draw, kinds=tuple(Kind)):
    """A header and its valid frame, from a worker to the switch or back."""
    header = with_possible_bits(draw(headers)._replace(kind=draw(st.sampled_from(kinds))))
    if header.kind is Kind.SUM and draw(st.booleans()):
        header = header._replace(dst_id=SUM_BUNDLES)
    body, worker = draw(bodies(header)), draw(st.sampled_from(WORKERS))
    return header, over_link(header, body, worker, down=draw(st.booleans()))


@st.composite
def direct_packets(draw):
    """The same between two workers."""
    kind = draw(st.sampled_from((Kind.FEATURE, Kind.ACK, Kind.RECALL, Kind.DONE)))
    packed = draw(st.integers(0, 1)) if kind is Kind.FEATURE else 0
    header = draw(headers)._replace(kind=kind, bits=32, level=packed)
    body = b""
    if kind is Kind.FEATURE:
        body = draw(packed_rows if packed else rows)
    return header, frame_of(header, body, *draw(st.permutations(WORKERS))[:2], protocol=DIRECT)


def frame_of(header, body, sender, receiver, protocol=PROTOCOL):
    packet = header.pack(body)
    return ipv4_envelope(sender, receiver, len(packet), protocol=protocol) + packet


def over_link(header, body, worker, *, down):
    """A frame from a worker to the switch, or back."""
    return frame_of(header, body, *((SWITCH, worker) if down else (worker, SWITCH)))


def feature(worker=0, *, fragment=0, **fields):
    word = fragment << 7 | WORD
    header = Header(kind=Kind.FEATURE, count=1, session=1, fragment=word, **fields)
    return frame_of(header, bytes(128), WORKERS[worker], SWITCH)


def control(kind, worker=0, *, down=False, **fields):
    """A packet without lanes from a worker, or to it."""
    body = (
        BarrierBody(heartbeats=0 if kind in (Kind.WAITING, Kind.REDUCING) else None).pack()
        if kind in (Kind.DONE, Kind.ADVANCE, Kind.WAITING, Kind.REDUCING)
        else b""
    )
    return over_link(Header(kind=kind, session=1, **fields), body, WORKERS[worker], down=down)


def flipped(frame, bit):
    changed = bytearray(frame)
    position = 8 * HEADER_AT + bit % (8 * (len(frame) - HEADER_AT))
    changed[position // 8] ^= 0x80 >> position % 8
    return bytes(changed)
