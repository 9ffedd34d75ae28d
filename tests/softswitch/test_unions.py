# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Header unions: at most one member is valid, whoever sets it; stacks of them.

simple_switch 1.15.5 sends the same frames.
"""

import json
from functools import cache

import pytest

from switchgnn.softswitch.errors import MalformedProgramError
from switchgnn.softswitch.loader import load_program
from switchgnn.softswitch.state import action_target
from switchgnn.softswitch.tables import Entry, Exact
from tests.softswitch.harness import Rig, config_bytes

FAILED, ANY, ONE, TWO, THREE, SAME, OTHER, LIST = (1 << bit for bit in reversed(range(8)))

# What arrives; the flags, the counted length and the rest of what is sent.
CASES = {
    "the first member": ("0100 a1", ANY | ONE, 5, "0100 a1"),
    "the second member": ("0200 b1b2", ANY | TWO, 6, "0200 b1b2"),
    "the third member": ("0300 c1c2c3", ANY | THREE, 7, "0300 c1c2c3"),
    "extracted after another one": ("0400 d1 e1e2", ANY | TWO, 7, "0400 e1e2"),
    "too short for another one": ("0400 d1", FAILED | ANY | ONE, 5, "0400 d1"),
    # A member that is valid already keeps its length; the length of the one that it
    # replaces is not taken away.
    "set valid again": ("0101 55", ANY | ONE, 5, "0101 aa"),
    "set valid in place of another": ("0201 b1b2", ANY | ONE, 7, "0201 aa"),
    "another one set invalid": ("0102 55", ANY | ONE, 5, "0102 55"),
    "set invalid": ("0202 b1b2 ff", SAME, 5, "0202 ff"),
    "assigned": ("0103 a1", ANY | ONE | SAME | OTHER, 5, "0103 a1 a1"),
    "assigned over the same member": (
        *("0603 b1b2 c1c2", ANY | TWO | SAME | OTHER),
        *(8, "0603 b1b2 b1b2"),
    ),
    "a copy is no alias": ("0104 a1", ANY | THREE | OTHER, 8, "0104 012345 a1"),
    "equal": ("0600 b1b2 b1b2", ANY | TWO | SAME | OTHER, 8, "0600 b1b2 b1b2"),
    "unequal": ("0600 b1b2 b1b3", ANY | TWO | OTHER, 8, "0600 b1b2 b1b3"),
    "none": ("0700", SAME, 4, "0700"),
    "no header at all": ("", FAILED | SAME, 2, ""),
    "a stack of all kinds": ("0500 01 11a2 213333 ff", SAME, 11, "0500 01 11a2 213333 ff"),
    "its first element": ("0500 1234 01 ff", SAME | LIST, 8, "0500 1234 01 ff"),
    "a stack that is full": (
        *("0500 01 02 03 04 ff", FAILED | SAME),
        *(9, "0500 01 02 03 04 ff"),
    ),
    "an element set valid": ("0505 01 1122 ff", SAME, 9, "0505 01 bb ff"),
    "an element assigned": ("0506 01 1112 0203 ff", FAILED | SAME, 10, "0506 02 1112 02 03 ff"),
    "an element that is taken out": ("0507 01 1234 ff", ANY | TWO, 8, "0507 1234 01 1234 ff"),
    # BMv2 exchanges the elements.
    "pushed": ("0508 01 1122 03 ff", SAME, 9, "0508 03 01 1122 ff"),
    "pushed, with room": ("0508 01 ff", SAME, 6, "0508 01 ff"),
    "popped": ("0509 01 1122 03 ff", SAME, 9, "0509 1122 03 01 ff"),
    "popped from none": ("0509 ff", SAME, 5, "0509 ff"),
}


@cache
def rig_of(kind):
    return kind(config_bytes("unions"))


@pytest.mark.parametrize("case", CASES)
def test_unions(case):
    arrives, flags, length, leaves = CASES[case]
    ((port, sent),) = rig_of(Rig).run(0, bytes.fromhex(arrives))
    assert (port, sent) == (1, bytes([flags, length]) + bytes.fromhex(leaves))


def test_validity_of_members_is_looked_up():
    rig = Rig(config_bytes("unions"))
    table = rig.state.tables["Enter.kinds"]
    program = rig.compiled.program
    actions = {program.actions[i].name: i for i in program.tables["Enter.kinds"].actions.values()}

    def put(one, two, three, name, *data):
        key = tuple(map(Exact, (one, two, three, 0)))
        target = action_target(program.tables["Enter.kinds"], actions[f"Enter.{name}"], data)
        table.put(Entry(key, 0, target))

    put(1, 0, 0, "write", 0x7777)
    put(0, 1, 0, "clear")
    sent = [
        rig.run(0, bytes.fromhex(f))[0][1][2:].hex() for f in ("0100a1", "0200b1b2", "030000c2c3")
    ]
    assert sent == ["01007777", "0200", "030000c2c3"]


def changed(change):
    document = json.loads(config_bytes("unions"))
    change(document)
    return json.dumps(document).encode()


FORGED = {
    "a header in two unions": lambda d: d["header_unions"][1].update(
        header_ids=d["header_unions"][0]["header_ids"]
    ),
    "a member of another type": lambda d: d["header_unions"][0]["header_ids"].reverse(),
    "a member too few": lambda d: d["header_unions"][0]["header_ids"].pop(),
    "a union of no type": lambda d: d["header_unions"][0].update(union_type="none"),
    "a stack of another type": lambda d: d["header_union_stacks"][0].update(union_type="none"),
    "a stack of no unions": lambda d: d["header_union_stacks"][0].update(header_union_ids=[99]),
}


@pytest.mark.parametrize("change", FORGED)
def test_forged_unions_are_refused(change):
    with pytest.raises(MalformedProgramError):
        load_program(changed(FORGED[change]))
