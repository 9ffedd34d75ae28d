# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The parser takes any bytes, and what it takes says what the bytes say."""

from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.host.wire.header import (
    BODY_AT,
    HEADER_AT,
    BarrierBody,
    Header,
    Kind,
    unpack_header,
)
from switchgnn.lab.virtual.network import body_bytes, body_end
from switchgnn.p4src import load_program
from tests.fuzz.frames import Generator
from tests.fuzz.world import SCALE, make_world

EXAMPLES = 1000 * SCALE
FRAMES = 20_000 * SCALE


def check(frame):
    header = unpack_header(frame)
    if header is None:
        return False
    end = body_end(frame)
    assert isinstance(header, Header)
    assert header.pack(bytes(frame[BODY_AT:end])) == bytes(frame[HEADER_AT:end])
    if header.kind in (Kind.DONE, Kind.ADVANCE, Kind.WAITING):
        assert BarrierBody.unpack(frame, header.kind).pack() == bytes(frame[BODY_AT:end])
    return True


headers = st.builds(
    Header,
    kind=st.sampled_from(Kind),
    src_id=st.integers(0, 2**32 - 1),
    dst_id=st.integers(0, 2**32 - 1),
    block_id=st.integers(0, 2**16 - 1),
    count=st.integers(0, 2**16 - 1),
    is_ack=st.booleans(),
    is_fetch=st.booleans(),
    ecn=st.booleans(),
    resend=st.booleans(),
    level=st.integers(0, 7),
    echo=st.booleans(),
    fragment=st.integers(0, 2**16 - 1).filter(lambda word: word % 8 < 6),
    feature_group=st.integers(0, 2**16 - 1),
    session=st.integers(0, 2**8 - 1),
    round=st.integers(0, 2**24 - 1),
)
# An envelope that the parser accepts, so that its payload is parsed.
ENVELOPE = bytes(12) + b"\x08\0\x45" + bytes(8) + b"\xfd" + bytes(10)


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None, database=None)
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=200).map(ENVELOPE.__add__)))
def test_arbitrary_bytes(frame):
    check(frame)
    check(memoryview(frame))


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None, database=None)
@given(headers, st.binary(min_size=1024, max_size=1024), st.binary(max_size=40))
def test_every_header_survives(header, body, padding):
    body = body[: body_bytes(header.kind, header.fragment)]
    frame = ENVELOPE + header.pack(body) + padding
    assert unpack_header(frame) == header
    assert check(memoryview(frame))


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None, database=None)
@given(headers, st.data())
def test_a_flipped_bit_is_noticed(header, data):
    frame = bytearray(ENVELOPE + header.pack(bytes(body_bytes(header.kind, header.fragment))))
    bit = data.draw(st.integers(8 * HEADER_AT, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    assert unpack_header(frame) is None


def test_mutated_frames():
    world = make_world(load_program().digest)
    generator = Generator(world, 5, source="02:00:00:00:00:04", target=world.network.switch.mac)
    sound = sum(check(shot.aim(1, 3)) for shot in generator.shots(FRAMES))
    assert FRAMES // 4 < sound < FRAMES
