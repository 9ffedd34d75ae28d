"""The table of fields is what P4 declares, and what the dissector and the words have."""

import re
from pathlib import Path

import pytest

from switchgnn.host.wire import header as wire

TREE = Path(__file__).parent.parent.parent.parent
P4 = re.sub(
    r"#ifdef TOFINO\n.*?#else\n", "", (TREE / "p4src/headers.p4").read_text(), flags=re.DOTALL
)
LUA = (TREE / "deploy/wireshark/switchgnn.lua").read_text()


def declared(header):
    """The names and bits of a header's fields in the P4 program."""
    found = re.findall(r"^typedef bit<(\d+)>\s+(\w+);", P4, re.MULTILINE)
    widths = {name: int(bits) for bits, name in found} | {"kind_t": 4}
    body = re.search(rf"^header {header} \{{(.*?)^\}}", P4, re.DOTALL | re.MULTILINE).group(1)
    fields = re.findall(r"^    (?:bit<(\d+)>|(\w+))\s+(\w+);", body, re.MULTILINE)
    return [(name, int(bits) if bits else widths[kind]) for bits, kind, name in fields]


@pytest.mark.parametrize(
    ("header", "fields"),
    [
        ("switchgnn_t", wire.HEADER_FIELDS),
        ("barrier_t", wire.BARRIER_FIELDS),
        ("waiting_t", wire.WAITING_FIELDS),
    ],
)
def test_the_p4_program_declares_the_same_fields(header, fields):
    assert declared(header) == [(name.lower(), bits) for name, bits in fields]


def test_the_dissector_has_the_same_table():
    rows = re.findall(r'^    \{ "(\w+)", (\d+), (\d)(?:, (0x\w+))? \},', LUA, re.MULTILINE)
    assert [(name, int(at), int(size), int(mask or "0", 16)) for name, at, size, mask in rows] == [
        (field.name, *wire.spans()[field.name.lower()]) for field in wire.HEADER_FIELDS
    ]


def test_the_dissector_has_the_same_kinds_and_refusals():
    names = set(re.findall(r'\[(\w+)\] = "(\w+)"', LUA))
    assert {(kind.name, kind.name.lower()) for kind in wire.Kind} <= names
    assert {(str(int(each)), each.name.lower()) for each in wire.Refusal} <= names
