"""Headers, stacks, checksums and hashes, as simple_switch 1.15.5 has them."""

import zlib
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.softswitch.harness import Rig, config_bytes


@cache
def rig_of(kind):
    return kind(config_bytes("headers"))


def magic(low=0, mid=0, signed=0, wide=0, tail=0):
    return (
        ((low << 13) | mid).to_bytes(2, "big")
        + bytes([signed & 255])
        + wide.to_bytes(5, "big")
        + tail.to_bytes(3, "big")
    )


def label(value, tc=0, last=0, ttl=9):
    return (value << 12 | tc << 9 | last << 8 | ttl).to_bytes(4, "big")


def run(frame):
    """(parser error, checksum error, labels, first byte) and the rest of the sent frame."""
    ((_, sent),) = rig_of(Rig).run(1, frame)
    return tuple(sent[:4]), sent[4:]


def internet_checksum(words):
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def crc16_bitwise(data):
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


@settings(max_examples=200, deadline=None)
@given(
    *(st.integers(3, 7), st.integers(0, (1 << 13) - 1), st.integers(-128, 127)),
    *(st.integers(0, (1 << 40) - 1), st.integers(0, (1 << 24) - 1), st.binary(max_size=40)),
)
def test_fields_of_every_width_survive(low, mid, signed, wide, tail, payload):
    moved = max(-128, signed - 100) if signed < 0 else min(127, signed + 100)
    frame = magic(low, mid, signed, wide, tail) + payload
    (error, bad, labels, first), sent = run(frame)
    assert (error, bad, labels, first) == (3 if tail == 0xBADBAD else 0, 0, 0, frame[0])
    assert sent == magic(low, mid, moved, wide, tail) + payload


@pytest.mark.parametrize("length", range(11))
def test_short_packets_raise_a_parser_error_and_stay_whole(length):
    frame = magic(3)[:length]
    (error, *_), sent = run(frame)
    assert error == 1
    assert sent == frame


@pytest.mark.parametrize("count", [1, 2, 3])
def test_label_stack_is_read_until_its_last(count):
    stack = b"".join(label(i + 1, last=i == count - 1) for i in range(count))
    (error, _, labels, _), sent = run(magic(1, 0x35) + stack + b"\xff\xffxyz")
    assert (error, labels) == (0, count)
    assert sent == magic(1, 0x35, 100) + stack + b"\xff\xffxyz"


def test_full_stack_and_look_ahead_past_the_end_are_parser_errors():
    stack = b"".join(label(i) for i in range(5))
    (error, _, labels, _), sent = run(magic(1, 5) + stack)
    assert (error, labels) == (2, 3)
    assert sent == magic(1, 5, 100) + stack
    assert run(magic(1, 5) + label(1, last=1) + b"\x01")[0][0] == 1


def test_pop_moves_labels_to_the_front_and_push_to_the_back():
    stack = label(1, tc=7) + label(2) + label(3, last=1)
    _, sent = run(magic(1, 5) + stack + b"\xff\xff")
    assert sent == magic(1, 5, 100) + stack[4:] + b"\xff\xff"
    stack = label(1, tc=6) + label(2, last=1)
    _, sent = run(magic(1, 5) + stack + b"\xff\xff")
    assert sent == magic(1, 5, 100) + label(0xABCDE, ttl=0) + stack + b"\xff\xff"


@settings(deadline=None)
@given(st.integers(0, 65535), st.integers(0, 65535), st.booleans())
def test_checksums_and_hashes(words, more, right):
    checksum = internet_checksum([words, more])
    data = words.to_bytes(2, "big") + more.to_bytes(2, "big")
    given_sum = checksum if right else checksum ^ 1
    frame = magic(2) + data + given_sum.to_bytes(2, "big") + bytes(6) + b"rest"
    (error, bad, _, _), sent = run(frame)
    assert (error, bad) == (0, int(not right))
    summed = sent[11:]
    assert summed[4:6] == checksum.to_bytes(2, "big")
    assert summed[6:8] == crc16_bitwise(data).to_bytes(2, "big")
    assert summed[8:12] == zlib.crc32(data).to_bytes(4, "big")
    assert summed[12:] == b"rest"
