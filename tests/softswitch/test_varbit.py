# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fields whose length a packet brings.

simple_switch 1.15.5 sends the same frames.
"""

import binascii
import copy
import json
from functools import cache

import pytest

from switchgnn.softswitch.codegen.compiler import compile_program
from switchgnn.softswitch.errors import MalformedProgramError, UnsupportedProgramError
from switchgnn.softswitch.loader import load_program
from tests.softswitch.harness import Rig, config_bytes

TOO_SHORT, FULL, TOO_LONG, NO_LENGTH, WRONG_SUM = range(1, 6)
SAME, DEEP = 2, 1
CRC = binascii.crc32(bytes.fromhex("a11223"))
# What arrives; the error, the counted length, the flags and the rest of what is sent.
CASES = {
    "of no bytes": ("0100 00000000 aaaa bb", 0, 12, 0, "0100 00000000 aaaa bb"),
    "of some bytes": (
        *("0100 00000020 aaaa 11223344 bb ffff", 0, 18, 0),
        "0100 00000020 aaaa 11223344 bb ffff",
    ),
    "of its most bytes": (
        *("0100 00000040 aaaa 1122334455667788 bb", 0, 20, 0),
        "0100 00000040 aaaa 1122334455667788 bb",
    ),
    "of too many bytes": (
        *("0100 00000048 aaaa 112233445566778899 bb", TOO_LONG, 21, 0),
        "0100 00000048 aaaa 112233445566778899 bb",
    ),
    "of more than there are": ("0100 00000048 aaaa bb", TOO_SHORT, 12, 0, "0100 00000048 aaaa bb"),
    "of half a byte": ("0100 00000004 aaaa bb 11", NO_LENGTH, 13, 0, "0100 00000004 aaaa bb 11"),
    "of half a byte too many": (
        *("0100 00000044 aaaa bb 11", NO_LENGTH, 13, 0),
        "0100 00000044 aaaa bb 11",
    ),
    "of 2^31 bits": ("0100 80000000 aaaa bb", NO_LENGTH, 12, 0, "0100 80000000 aaaa bb"),
    "of the most bits below that": (
        *("0100 7ffffff8 aaaa bb", TOO_SHORT, 12, 0),
        "0100 7ffffff8 aaaa bb",
    ),
    "words, of which none is left": (
        *("0500 00000005 0000 11 2233", 0, 14, 0),
        "0500 00000005 0000 11 2233",
    ),
    "words": ("0500 00000006 aaaa 11223344 bb", 0, 16, 0, "0500 00000006 aaaa 11223344 bb"),
    "words, too few": ("0500 00000004 aaaa bb cc", NO_LENGTH, 13, 0, "0500 00000004 aaaa bb cc"),
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
    "equal": (
        *("0300 00000010 aaaa 1122 02 cccc 1122 dd", 0, 19, SAME),
        "0300 00000010 aaaa 1122 02 cccc 1122 dd",
    ),
    # As numbers, for BMv2.
    "equal, of other lengths": (
        *("0300 00000010 aaaa 1122 03 cccc 001122 dd ee", 0, 21, SAME),
        "0300 00000010 aaaa 1122 03 cccc 001122 dd ee",
    ),
    "unequal": (
        *("0300 00000010 aaaa 1122 00 cccc dd ee", 0, 18, 0),
        "0300 00000010 aaaa 1122 00 cccc dd ee",
    ),
    "assigned": (
        *("0303 00000010 aaaa 1122 03 cccc 334455 dd ee", 0, 21, SAME),
        "0303 00000010 aaaa 334455 03 cccc 334455 dd ee",
    ),
    "exchanged through a variable": (
        *("0308 00000010 aaaa 1122 03 cccc 334455 dd ee", 0, 21, 0),
        "0308 00000010 aaaa 334455 03 cccc 1122 dd ee",
    ),
    "assigned with its header": (
        *("0304 00000010 aaaa 1122 03 cccc 334455 dd ee", 0, 21, SAME),
        "0304 00000010 aaaa 1122 03 aaaa 1122 03 ee",
    ),
    "assigned with its header, which becomes valid": (
        *("0104 00000010 aaaa 1122 bb", 0, 14, SAME),
        "0104 00000010 aaaa 1122 bb aaaa 1122 bb",
    ),
    "between bytes, of none": ("0200 00000000 ab 77", 0, 11, 0, "0200 00000000 ab 77"),
    "between bytes": ("0200 00000020 a11223344b cc", 0, 15, 0, "0200 00000020 a11223344b cc"),
    "between bytes, too long": (
        *("0200 00000028 a1122334455b", TOO_LONG, 15, 0),
        "0200 00000028 a1122334455b",
    ),
    "between bytes, hashed": (
        *("0209 00000010 a11223 ff", 0, 19, 0),
        f"0209 00000010 a11223 ffff {CRC:08x} ff",
    ),
    "one of a stack": ("0400 00000008 a1 ff ee", 0, 12, 0, "0400 00000008 a1 ff ee"),
    "a stack": ("0400 00000008 a1 a2 ff", 0, 12, DEEP, "0400 00000008 a1 a2 ff"),
    "a stack that is full": (
        *("0400 00000008 a1 a2 a3 ff", FULL, 13, DEEP),
        "0400 00000008 a1 a2 a3 ff",
    ),
    "a stack of longer ones": (
        *("0400 00000018 a1a2a3 b1b2b3 ff", 0, 16, DEEP),
        "0400 00000018 a1a2a3 b1b2b3 ff",
    ),
    "pushed": ("0406 00000008 a1 a2 ff ee", 0, 13, DEEP, "0406 00000008 a1 ff ee"),
    "popped": ("0407 00000008 a1 a2 ff ee", 0, 13, 0, "0407 00000008 a2 ff ee"),
    "in a wrong sum": (
        *("0600 00000010 aaaa 1122 bb 1234 00000000 55", WRONG_SUM, 21, 0),
        "0600 00000010 aaaa 1122 bb 8932 00000000 55",
    ),
    "in a right sum": (
        *("0600 00000010 aaaa 1122 bb 8932 00000000 55", 0, 21, 0),
        "0600 00000010 aaaa 1122 bb 8932 00000000 55",
    ),
}


@cache
def rig_of(kind):
    return kind(config_bytes("varbit"))


@pytest.mark.parametrize("case", CASES)
def test_varbit(case):
    arrives, reason, length, flags, leaves = CASES[case]
    ((port, sent),) = rig_of(Rig).run(0, bytes.fromhex(arrives))
    assert (port, sent) == (1, bytes([reason, length, flags]) + bytes.fromhex(leaves))


VARBIT = json.loads(config_bytes("varbit"))


def kind_of(document, name):
    return next(kind for kind in document["header_types"] if kind["name"] == name)


def operation(document, op):
    return next(
        operation
        for state in document["parsers"][0]["parse_states"]
        for operation in state["parser_ops"]
        if operation["op"] == op
    )


def primitive(document, op):
    return next(p for action in document["actions"] for p in action["primitives"] if p["op"] == op)


FORGED = {
    "two of any length": lambda d: kind_of(d, "opts_t")["fields"].append(["more", "*"]),
    "shorter than its other fields": lambda d: kind_of(d, "opts_t").update(max_length=2),
    "very long": lambda d: kind_of(d, "opts_t").update(max_length=1 << 40),
    "no longest": lambda d: kind_of(d, "opts_t").update(max_length=None),
    "a length of its own": lambda d: kind_of(d, "opts_t").update(
        length_exp={"type": "hexstr", "value": "0x01"}
    ),
    "extracted without a length": lambda d: (
        operation(d, "extract_VL").update(op="extract")
        or operation(d, "extract_VL")["parameters"].pop()
    ),
    "another one's length": lambda d: operation(d, "extract_VL")["parameters"].__setitem__(
        0, {"type": "regular", "value": "head"}
    ),
    "assigned a shorter one": lambda d: primitive(d, "assign_VL")["parameters"].__setitem__(
        1, {"type": "field", "value": ["odd", "v"]}
    ),
    "assigned a number": lambda d: primitive(d, "assign_VL").update(op="assign"),
    "assigned to a number": lambda d: primitive(d, "assign_VL")["parameters"].__setitem__(
        0, {"type": "field", "value": ["head", "kind"]}
    ),
}


@pytest.mark.parametrize("change", FORGED)
def test_forged_lengths_are_refused(change):
    """Native code has room for the longest one, and no more."""
    document = copy.deepcopy(VARBIT)
    FORGED[change](document)
    with pytest.raises((MalformedProgramError, UnsupportedProgramError)):
        compile_program(load_program(json.dumps(document).encode()))
