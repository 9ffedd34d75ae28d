# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in the compiled program besides those of tests/ptf/switchgnn_ptf/mistakes.py.

Each function changes p4c's JSON, parsed, in place.
"""

import json

_ALWAYS = {"type": "hexstr", "value": "0x1"}


def nodes(node):
    """Yield all objects in a part of the document."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            yield from nodes(child)


def actions(compiled, name):
    """Return all copies of an action."""
    found = [action for action in compiled["actions"] if action["name"].endswith(name)]
    assert found, name
    return found


def assignments(compiled, name, to):
    """Return the assignments in an action to fields whose name ends so."""
    return [
        step
        for action in actions(compiled, name)
        for step in action["primitives"]
        if step["op"] == "assign" and str(step["parameters"][0]["value"][-1]).endswith(to)
    ]


def constant(number):
    """Return a number as the document has it."""
    return {"type": "hexstr", "value": hex(number)}


def any_session(compiled):
    """Let packets of other sessions through."""
    _refuse_less(compiled, "0x14")


def any_process(compiled):
    """Let another process of a worker into the round."""
    _refuse_less(compiled, "0x15")


def any_plan(compiled):
    """Let a worker with another plan take part."""
    _refuse_less(compiled, "0x09")


def any_port(compiled):
    """Let whoever is behind a port speak for everybody."""
    _refuse_less(compiled, "0x03")


def any_count(compiled):
    """Take features and partial sums with any Count."""
    _refuse_less(compiled, "0x06")


def stale_is_new(compiled):
    """Let a source with an older tag through."""
    _refuse_less(compiled, "0x02")


def duplicate_is_new(compiled):
    """Let a source with the same tag through once more."""
    _refuse_less(compiled, "0x01")


def slots_without_tag(compiled):
    """Add to what a slot held under an older tag, too."""
    for conditional in _comparisons(compiled, ">="):
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
    for step in assignments(compiled, ".recovery.touch", "count"):
        if int(step["parameters"][1]["value"], 16) == 0:
            step["parameters"][1] = constant(1)


def nobody_has_the_maximum(compiled):
    """Let the first magnitude of a round be the largest."""
    for conditional in _comparisons(compiled, ">"):
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
    for name in (".barrier.collect",):
        write = {
            "op": "register_write",
            "parameters": [
                {"type": "register_array", "value": "SwitchIngress.barrier.collected"},
                constant(0),
                {"type": "field", "value": ["scalars", _field(compiled, "_members")]},
            ],
        }
        for action in actions(compiled, name):
            action["primitives"].append({**action["primitives"][-1], **write})


def acknowledge_one_more(compiled):
    """Say in each acknowledgement that one more feature was let through."""
    for step in assignments(compiled, ".departure.make_ack", "count"):
        step["parameters"][1] = constant(8)


def missing_without_count(compiled):
    """Say of every slot that is not complete that it is empty."""
    for step in assignments(compiled, ".departure.make_missing", "count"):
        step["parameters"][1] = constant(0)


def fetch_with_count(compiled):
    """Hand a fetch on with what released the slot."""
    for step in assignments(compiled, ".departure.make_fetch", "count"):
        step["parameters"][1] = constant(1)


def tag_without_round(compiled):
    """Forget the round in the tag."""
    for action in actions(compiled, "SwitchIngress.make_tag"):
        for found in nodes(action):
            if found.get("value") == ["switchgnn", "round"]:
                found.update(constant(0))


def tag_without_fragment(compiled):
    """Forget the fragment in the tag."""
    for action in actions(compiled, "SwitchIngress.make_tag"):
        for found in nodes(action):
            if found.get("value") == ["switchgnn", "fragment"]:
                found.update(constant(0))


def _field(compiled, part):
    names = {
        found["value"][1]
        for found in nodes(compiled["actions"])
        if found.get("type") == "field" and part in str(found["value"][1])
    }
    assert len(names) == 1, names
    return names.pop()


def _comparisons(compiled, operator):
    ingress = next(part for part in compiled["pipelines"] if part["name"] == "ingress")
    return [found for found in nodes(ingress["conditionals"]) if found.get("op") == operator]


def _refuse_less(compiled, outcome):
    """Let what has this outcome stay AGGREGATED."""
    for action in compiled["actions"]:
        for step in action["primitives"]:
            to, value = (step["parameters"] * 2)[:2] if step["op"] == "assign" else ({}, {})
            if "_outcome" in str(to.get("value")) and value.get("value") == outcome:
                value["value"] = "0x00"
