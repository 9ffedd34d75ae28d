# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Loops in actions, and in the control flow itself."""

import json
from functools import cache

import pytest

from tests.softswitch.harness import Rig, config_bytes

ADD, ADD_THIRDS, NESTED, NESTED_THIRDS, SEARCH, SEARCH_OTHER, NOTHING = range(1, 8)


def looping_control():
    """The program again and again, until there were as many turns as the packet says."""
    document = json.loads(config_bytes("loops"))
    pipeline = document["pipelines"][0]
    turns, limit = ({"type": "field", "value": ["n", name]} for name in ("turns", "limit"))
    condition = {"op": "<", "left": turns, "right": limit}
    table = next(t for t in pipeline["tables"] if t["name"] == "Enter.work")
    pipeline["conditionals"].append(
        {
            "name": "more",
            "id": 99,
            "expression": {"type": "expression", "value": condition},
            "true_next": table["name"],
            "false_next": None,
        }
    )
    table["base_default_next"] = "more"
    table["next_tables"] = dict.fromkeys(table["next_tables"], "more")
    return json.dumps(document).encode()


@cache
def rig_of(kind, control=False):
    return kind(looping_control() if control else config_bytes("loops"))


def run(rig, what, count, limit=0, turns=0):
    """Sum, product and turns behind the program."""
    frame = bytes([what, count, limit]) + bytes(8) + bytes([turns]) + b"rest"
    ((port, sent),) = rig.run(0, frame)
    assert (port, sent[:3], sent[12:]) == (1, frame[:3], b"rest")
    return int.from_bytes(sent[3:7], "big"), int.from_bytes(sent[7:11], "big"), sent[11]


@pytest.mark.parametrize("count", [0, 1, 5, 255])
def test_a_sum(count):
    assert run(rig_of(Rig), ADD, count) == (sum(range(count)), 0, 0)


def test_a_sum_in_steps():
    assert run(rig_of(Rig), ADD_THIRDS, 10) == (0 + 3 + 6 + 9, 0, 0)


# The pairs i <= j, less those of 6, up to the first 9.
@pytest.mark.parametrize(
    ("what", "count", "limit", "product"),
    [
        (NESTED, 0, 5, 0),
        (NESTED, 3, 3, 3 + 2 + 1),
        (NESTED, 2, 8, 7 + 6),
        (NESTED, 1, 20, 8),
        (NESTED, 12, 12, 8 + 7 + 6 + 5 + 4 + 3 + 2 + 2 + 1 + 0 + 2 + 1),
        # Every third: 0, 3 and then 9; 1, 4, 7 and 10.
        (NESTED_THIRDS, 1, 12, 2),
        (NESTED_THIRDS, 2, 12, 2 + 4),
    ],
)
def test_loops_in_loops(what, count, limit, product):
    assert run(rig_of(Rig), what, count, limit) == (0, product, count)


def test_a_loop_that_is_left():
    rig = Rig(config_bytes("loops"))
    assert [run(rig, what, 0)[2] for what in (SEARCH, SEARCH_OTHER, SEARCH, SEARCH_OTHER)] == [
        *(0, 1, 0, 1)
    ]
    assert list(rig.state.registers["Enter.cells"].cells) == [77, 78, *[0] * 14]


def test_a_loop_to_its_end():
    rig = Rig(config_bytes("loops"))
    rig.state.registers["Enter.cells"].cells[:] = [5] * 16
    assert run(rig, SEARCH, 0)[2] == 15


@pytest.mark.parametrize(("limit", "turns", "after"), [(5, 0, 5), (5, 3, 5), (5, 9, 10), (0, 0, 1)])
def test_a_loop_of_tables(limit, turns, after):
    assert run(rig_of(Rig, True), NESTED, 1, limit, turns) == (0, limit, after)


def test_a_loop_without_end_ends():
    assert run(rig_of(Rig, True), NOTHING, 0, 5, 4) == (0, 0, 4)
