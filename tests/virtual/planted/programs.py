"""Mistakes in the compiled program besides those of tests/ptf/switchgnn_ptf/mistakes.py.

Each function changes p4c's JSON, parsed, in place.
"""

import json
from functools import partial

from tests.planted.planting import accept, actions, constant, ingress, nodes, operations

# The outcome of a refusal that is ignored.
_ANOTHER_PROCESS = "0x15"


def acknowledge_what_comes(compiled):
    """Count a feature of a group again when it comes again."""
    for action in actions(compiled, ".accepted.count_group"):
        for found in nodes(action):
            if found.get("op") == "?":
                found["right"] = found["left"]


def nobody_has_the_maximum(compiled):
    """Let the first magnitude of a round be the largest."""
    for conditional in operations(ingress(compiled)["conditionals"], ">"):
        if "magnitude" in json.dumps(conditional["left"]) and "_largest" in json.dumps(
            conditional["right"]
        ):
            conditional["left"] = constant(0)


def next_turn_at_once(compiled):
    """Let the turn go to the next tag with the first `done`."""
    write = {
        "op": "register_write",
        "parameters": [
            {"type": "register_array", "value": "SwitchIngress.barrier.collected"},
            constant(0),
            {"type": "field", "value": ["scalars", _field(compiled, "_members")]},
        ],
    }
    for action in actions(compiled, ".barrier.collect"):
        action["primitives"].append({**action["primitives"][-1], **write})


def missing_without_count(compiled):
    """Report that a slot has no contributions."""
    for step in _assignments(compiled, ".rewrite.make_missing", "count"):
        step["parameters"][1] = constant(0)


def _field(compiled, part):
    names = {
        found["value"][1]
        for found in nodes(compiled["actions"])
        if found.get("type") == "field" and part in str(found["value"][1])
    }
    assert len(names) == 1, names
    return names.pop()


def _assignments(compiled, name, to):
    """Return the assignments in an action to fields whose name ends so."""
    return [
        step
        for action in actions(compiled, name)
        for step in action["primitives"]
        if step["op"] == "assign" and str(step["parameters"][0]["value"][-1]).endswith(to)
    ]


CHANGES = {
    "any_process": partial(accept, outcome=_ANOTHER_PROCESS),
    "acknowledge_what_comes": acknowledge_what_comes,
    "nobody_has_the_maximum": nobody_has_the_maximum,
    "next_turn_at_once": next_turn_at_once,
    "missing_without_count": missing_without_count,
}
