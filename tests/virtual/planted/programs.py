# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in the compiled program besides those of tests/ptf/switchgnn_ptf/mistakes.py.

Each function changes p4c's JSON, parsed, in place.
"""

import json
from functools import partial

from tests.planted.planting import accept, actions, constant, ingress, nodes, operations

# Checks whose refusal is ignored, by the outcome that they set.
_IGNORED = {
    "any_session": "0x14",
    "any_process": "0x15",
    "stale_is_new": "0x02",
    "duplicate_is_new": "0x01",
}


def slots_without_tag(compiled):
    """Add to what a slot held under an older tag, too."""
    for conditional in operations(ingress(compiled)["conditionals"], ">="):
        if str(conditional["left"].get("value", [""])[-1]).endswith("_content"):
            conditional["right"] = constant(0)


def barrier_without_tag(compiled):
    """Take those who were done with the last barrier for done with this one."""
    for action in actions(compiled, ".barrier.look"):
        for found in nodes(action):
            if found.get("op") == "==":
                found["right"] = found["left"]


def acknowledge_what_comes(compiled):
    """Count a feature of a group again when it comes again."""
    for action in actions(compiled, ".accepted.count_group"):
        for found in nodes(action):
            if found.get("op") == "?":
                found["right"] = found["left"]


def recall_adds(compiled):
    """Let a recall count as a contribution."""
    for step in _assignments(compiled, ".recovery.touch", "count"):
        if int(step["parameters"][1]["value"], 16) == 0:
            step["parameters"][1] = constant(1)


def nobody_has_the_maximum(compiled):
    """Let the first magnitude of a round be the largest."""
    for conditional in operations(ingress(compiled)["conditionals"], ">"):
        if "magnitude" in json.dumps(conditional["left"]) and "_largest" in json.dumps(
            conditional["right"]
        ):
            conditional["left"] = constant(0)


def stop_at_the_first_sum(compiled):
    """Let a feature that completes a slot not go on behind that bank."""
    for action in actions(compiled, ".loop.rest_of_banks"):
        for step in action["primitives"]:
            if str(step["parameters"][0]["value"][-1]).endswith("again"):
                step["parameters"][1] = constant(0)


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


def assign(compiled, action, field, value):
    """Set a field to a constant wherever an action assigns to it."""
    for step in _assignments(compiled, action, field):
        step["parameters"][1] = constant(value)


def tag_without(compiled, field):
    """Forget a field in the tag."""
    for action in actions(compiled, "SwitchIngress.make_tag"):
        for found in nodes(action):
            if found.get("value") == ["switchgnn", field]:
                found.update(constant(0))


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
    **{name: partial(accept, outcome=outcome) for name, outcome in _IGNORED.items()},
    "slots_without_tag": slots_without_tag,
    "barrier_without_tag": barrier_without_tag,
    "acknowledge_what_comes": acknowledge_what_comes,
    "recall_adds": recall_adds,
    "nobody_has_the_maximum": nobody_has_the_maximum,
    "stop_at_the_first_sum": stop_at_the_first_sum,
    "next_turn_at_once": next_turn_at_once,
    "acknowledge_one_more": partial(assign, action=".rewrite.make_ack", field="count", value=8),
    "missing_without_count": partial(
        assign, action=".rewrite.make_missing", field="count", value=0
    ),
    "tag_without_round": partial(tag_without, field="round"),
    "tag_without_fragment": partial(tag_without, field="fragment"),
}
