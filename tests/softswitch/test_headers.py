"""Headers, unions, stacks and varbit fields, as simple_switch 1.15.5 has them, and expressions."""

import binascii
import json
import zlib
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.softswitch.base.errors import MalformedProgramError, UnsupportedProgramError
from switchgnn.softswitch.base.tables import Entry
from switchgnn.softswitch.lowering.loader import load_program
from switchgnn.softswitch.lowering.program import lower_program
from tests.softswitch.harness import Rig, action_target, config_bytes, exactly


@cache
def rig_of(kind, program="headers"):
    return kind(config_bytes(program))


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
    st.integers(3, 7),
    st.integers(0, (1 << 13) - 1),
    st.integers(-128, 127),
    st.integers(0, (1 << 40) - 1),
    st.integers(0, (1 << 24) - 1),
    st.binary(max_size=40),
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
    pushed = label(0xABCDE, ttl=0)
    assert sent == magic(1, 5, 100) + pushed + stack + b"\xff\xff"


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


ALIKE = None  # leaves as it arrives
FAILED, ANY, ONE, TWO, THREE, SAME, OTHER, LIST = (1 << bit for bit in reversed(range(8)))
# Received frame; flags, counted length and rest of the sent frame.
UNIONS = {
    "the first member": ("0100 a1", ANY | ONE, 5, ALIKE),
    "the second member": ("0200 b1b2", ANY | TWO, 6, ALIKE),
    "the third member": ("0300 c1c2c3", ANY | THREE, 7, ALIKE),
    "extracted after another one": ("0400 d1 e1e2", ANY | TWO, 7, "0400 e1e2"),
    "too short for another one": ("0400 d1", FAILED | ANY | ONE, 5, ALIKE),
    # A valid member keeps its length; that of a replaced member is not subtracted.
    "set valid again": ("0101 55", ANY | ONE, 5, "0101 aa"),
    "set valid in place of another": ("0201 b1b2", ANY | ONE, 7, "0201 aa"),
    "another one set invalid": ("0102 55", ANY | ONE, 5, ALIKE),
    "set invalid": ("0202 b1b2 ff", SAME, 5, "0202 ff"),
    "assigned": ("0103 a1", ANY | ONE | SAME | OTHER, 5, "0103 a1 a1"),
    "assigned over the same member": (
        *("0603 b1b2 c1c2", ANY | TWO | SAME | OTHER, 8),
        "0603 b1b2 b1b2",
    ),
    "a copy is no alias": ("0104 a1", ANY | THREE | OTHER, 8, "0104 012345 a1"),
    "equal": ("0600 b1b2 b1b2", ANY | TWO | SAME | OTHER, 8, ALIKE),
    "unequal": ("0600 b1b2 b1b3", ANY | TWO | OTHER, 8, ALIKE),
    "none": ("0700", SAME, 4, ALIKE),
    "no header at all": ("", FAILED | SAME, 2, ALIKE),
    "a stack of all kinds": ("0500 01 11a2 213333 ff", SAME, 11, ALIKE),
    "its first element": ("0500 1234 01 ff", SAME | LIST, 8, ALIKE),
    "a stack that is full": ("0500 01 02 03 04 ff", FAILED | SAME, 9, ALIKE),
    "an element set valid": ("0505 01 1122 ff", SAME, 9, "0505 01 bb ff"),
    "an element assigned": ("0506 01 1112 0203 ff", FAILED | SAME, 10, "0506 02 1112 02 03 ff"),
    "an element that is taken out": ("0507 01 1234 ff", ANY | TWO, 8, "0507 1234 01 1234 ff"),
    # BMv2 exchanges the elements.
    "pushed": ("0508 01 1122 03 ff", SAME, 9, "0508 03 01 1122 ff"),
    "pushed, with room": ("0508 01 ff", SAME, 6, ALIKE),
    "popped": ("0509 01 1122 03 ff", SAME, 9, "0509 1122 03 01 ff"),
    "popped from none": ("0509 ff", SAME, 5, ALIKE),
}


@pytest.mark.parametrize("case", UNIONS)
def test_unions(case):
    arrives, flags, length, leaves = UNIONS[case]
    leaves = arrives if leaves is ALIKE else leaves
    ((port, sent),) = rig_of(Rig, "unions").run(0, bytes.fromhex(arrives))
    assert (port, sent) == (1, bytes([flags, length]) + bytes.fromhex(leaves))


def test_validity_of_members_is_looked_up():
    rig = Rig(config_bytes("unions"))
    table = rig.state.tables["Enter.kinds"]
    program = rig.program.program
    actions = {program.actions[i].name: i for i in program.tables["Enter.kinds"].actions.values()}

    def put(one, two, three, name, *data):
        key = tuple(map(exactly, (one, two, three, 0)))
        target = action_target(program.tables["Enter.kinds"], actions[f"Enter.{name}"], data)
        table.put(Entry(key, 0, target))

    put(1, 0, 0, "write", 0x7777)
    put(0, 1, 0, "clear")
    sent = [
        rig.run(0, bytes.fromhex(f))[0][1][2:].hex() for f in ("0100a1", "0200b1b2", "030000c2c3")
    ]
    assert sent == ["01007777", "0200", "030000c2c3"]


TOO_SHORT, FULL, TOO_LONG, NO_LENGTH, WRONG_SUM = range(1, 6)
EQUAL, DEEP = 2, 1
CRC = binascii.crc32(bytes.fromhex("a11223"))
# Received frame; error, counted length, flags and rest of the sent frame.
VARBITS = {
    "of no bytes": ("0100 00000000 aaaa bb", 0, 12, 0, ALIKE),
    "of some bytes": ("0100 00000020 aaaa 11223344 bb ffff", 0, 18, 0, ALIKE),
    "of its most bytes": ("0100 00000040 aaaa 1122334455667788 bb", 0, 20, 0, ALIKE),
    "of too many bytes": ("0100 00000048 aaaa 112233445566778899 bb", TOO_LONG, 21, 0, ALIKE),
    "of more than there are": ("0100 00000048 aaaa bb", TOO_SHORT, 12, 0, ALIKE),
    "of half a byte": ("0100 00000004 aaaa bb 11", NO_LENGTH, 13, 0, ALIKE),
    "of half a byte too many": ("0100 00000044 aaaa bb 11", NO_LENGTH, 13, 0, ALIKE),
    "of 2^31 bits": ("0100 80000000 aaaa bb", NO_LENGTH, 12, 0, ALIKE),
    "of the most bits below that": ("0100 7ffffff8 aaaa bb", TOO_SHORT, 12, 0, ALIKE),
    "words, of which none is left": ("0500 00000005 0000 11 2233", 0, 14, 0, ALIKE),
    "words": ("0500 00000006 aaaa 11223344 bb", 0, 16, 0, ALIKE),
    "words, too few": ("0500 00000004 aaaa bb cc", NO_LENGTH, 13, 0, ALIKE),
    "set invalid": ("0101 00000020 aaaa 11223344 bb ffff", 0, 11, 0, "0101 00000020 ffff"),
    # BMv2 keeps the length.
    "set invalid and valid again": (
        *("0102 00000020 aaaa 11223344 bb ffff", 0, 18, 0),
        "0102 00000020 0000 00000000 bb ffff",
    ),
    "set valid without a length": (
        *("0105 00000008 aaaa 11 bb ffff", 0, 18, 0),
        "0105 00000008 aaaa 11 bb aaaa 00 ffff",
    ),
    "equal": ("0300 00000010 aaaa 1122 02 cccc 1122 dd", 0, 19, EQUAL, ALIKE),
    # As numbers, for BMv2.
    "equal, of other lengths": (
        "0300 00000010 aaaa 1122 03 cccc 001122 dd ee",
        0,
        21,
        EQUAL,
        ALIKE,
    ),
    "unequal": ("0300 00000010 aaaa 1122 00 cccc dd ee", 0, 18, 0, ALIKE),
    "assigned": (
        *("0303 00000010 aaaa 1122 03 cccc 334455 dd ee", 0, 21, EQUAL),
        "0303 00000010 aaaa 334455 03 cccc 334455 dd ee",
    ),
    "exchanged through a variable": (
        *("0308 00000010 aaaa 1122 03 cccc 334455 dd ee", 0, 21, 0),
        "0308 00000010 aaaa 334455 03 cccc 1122 dd ee",
    ),
    "assigned with its header": (
        *("0304 00000010 aaaa 1122 03 cccc 334455 dd ee", 0, 21, EQUAL),
        "0304 00000010 aaaa 1122 03 aaaa 1122 03 ee",
    ),
    "assigned with its header, which becomes valid": (
        *("0104 00000010 aaaa 1122 bb", 0, 14, EQUAL),
        "0104 00000010 aaaa 1122 bb aaaa 1122 bb",
    ),
    "between bytes, of none": ("0200 00000000 ab 77", 0, 11, 0, ALIKE),
    "between bytes": ("0200 00000020 a11223344b cc", 0, 15, 0, ALIKE),
    "between bytes, too long": ("0200 00000028 a1122334455b", TOO_LONG, 15, 0, ALIKE),
    "between bytes, hashed": (
        *("0209 00000010 a11223 ff", 0, 19, 0),
        f"0209 00000010 a11223 ffff {CRC:08x} ff",
    ),
    "one of a stack": ("0400 00000008 a1 ff ee", 0, 12, 0, ALIKE),
    "a stack": ("0400 00000008 a1 a2 ff", 0, 12, DEEP, ALIKE),
    "a stack that is full": ("0400 00000008 a1 a2 a3 ff", FULL, 13, DEEP, ALIKE),
    "a stack of longer ones": ("0400 00000018 a1a2a3 b1b2b3 ff", 0, 16, DEEP, ALIKE),
    "pushed": ("0406 00000008 a1 a2 ff ee", 0, 13, DEEP, "0406 00000008 a1 ff ee"),
    "popped": ("0407 00000008 a1 a2 ff ee", 0, 13, 0, "0407 00000008 a2 ff ee"),
    "in a wrong sum": (
        *("0600 00000010 aaaa 1122 bb 1234 00000000 55", WRONG_SUM, 21, 0),
        "0600 00000010 aaaa 1122 bb 8932 00000000 55",
    ),
    "in a right sum": ("0600 00000010 aaaa 1122 bb 8932 00000000 55", 0, 21, 0, ALIKE),
}


@pytest.mark.parametrize("case", VARBITS)
def test_varbit(case):
    arrives, reason, length, flags, leaves = VARBITS[case]
    leaves = arrives if leaves is ALIKE else leaves
    ((port, sent),) = rig_of(Rig, "varbit").run(0, bytes.fromhex(arrives))
    assert (port, sent) == (1, bytes([reason, length, flags]) + bytes.fromhex(leaves))


def kind_of(document, name):
    return next(kind for kind in document["header_types"] if kind["name"] == name)


def extraction(document):
    states = document["parsers"][0]["parse_states"]
    operations = [operation for state in states for operation in state["parser_ops"]]
    return next(each for each in operations if each["op"] == "extract_VL")


def assignment(document):
    primitives = [each for action in document["actions"] for each in action["primitives"]]
    return next(each for each in primitives if each["op"] == "assign_VL")


def field(*names):
    return {"type": "field", "value": list(names)}


FORGED = {
    "a header in two unions": (
        "unions",
        lambda d: d["header_unions"][1].update(header_ids=d["header_unions"][0]["header_ids"]),
    ),
    "a member of another type": ("unions", lambda d: d["header_unions"][0]["header_ids"].reverse()),
    "a stack of another type": (
        "unions",
        lambda d: d["header_union_stacks"][0].update(union_type="none"),
    ),
    # Native code has room for the maximum only.
    "two of any length": ("varbit", lambda d: kind_of(d, "opts_t")["fields"].append(["more", "*"])),
    "shorter than its other fields": (
        "varbit",
        lambda d: kind_of(d, "opts_t").update(max_length=2),
    ),
    "very long": ("varbit", lambda d: kind_of(d, "opts_t").update(max_length=1 << 40)),
    "extracted without a length": (
        "varbit",
        lambda d: extraction(d).update(op="extract", parameters=extraction(d)["parameters"][:1]),
    ),
    "a shorter one": (
        "varbit",
        lambda d: assignment(d)["parameters"].__setitem__(1, field("odd", "v")),
    ),
    "assigned a number": ("varbit", lambda d: assignment(d).update(op="assign")),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_headers_are_refused(case):
    program, change = FORGED[case]
    document = json.loads(config_bytes(program))
    change(document)
    with pytest.raises((MalformedProgramError, UnsupportedProgramError)):
        lower_program(load_program(json.dumps(document).encode()))
