# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The program with a mistake planted in it, to show that a case notices.

Each function changes the compiled program (p4c's JSON, parsed) in place.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from switchgnn.p4src import Program

Json = Any
_LANES = 32


def carry_between_lanes(compiled: Json) -> None:
    """Add the 1,024 bits as one number, without the masks of PACKED_ADD."""
    rests, tops = "0x" + "7fffffff" * _LANES, "0x" + "80000000" * _LANES
    for value in _constants(compiled["actions"]):
        if value["value"] == rests:
            value["value"] = "0x" + "ffffffff" * _LANES
        elif value["value"] == tops:
            value["value"] = "0x" + "00000000" * _LANES


def forget_sources(compiled: Json) -> None:
    """Let Seen write back the tag it read, so that nothing is ever a duplicate."""
    action = _action(compiled, "SwitchIngress.seen.look_and_remember")
    write = next(step for step in action["primitives"] if step["op"] == "register_write")
    write["parameters"][2] = {"type": "field", "value": ["scalars", "seen_last"]}


def overwrite_by_stale(compiled: Json) -> None:
    """Let a contribution under an older tag overwrite a slot."""
    for comparison in _operations(_ingress(compiled)["conditionals"], ">"):
        left = comparison["left"]
        if left["type"] == "field" and left["value"][1].endswith("_content"):
            _never(comparison)


def believe_checksums(compiled: Json) -> None:
    """Verify no checksum."""
    compiled["checksums"] = [check for check in compiled["checksums"] if not check["verify"]]


def count_repeated_done(compiled: Json) -> None:
    """Add worker bits instead of or-ing them, so that a repeated DONE counts as another."""
    for operation in _operations(_action(compiled, "SwitchIngress.barrier.collect"), "|"):
        operation["op"] = "+"


def release_nothing(compiled: Json) -> None:
    """Let a fetch touch its slot with a count of 0, as a recall does."""
    for action in compiled["actions"]:
        if action["name"] == "SwitchIngress.claim.recovery.touch":
            for value in _constants(action):
                if value["value"] == "0xffff":
                    value["value"] = "0x0000"


def forget_newer_groups(compiled: Json) -> None:
    """Let a delayed packet of an older group take the place of a newer one's count."""
    for comparison in _operations(_action(compiled, "SwitchIngress.accepted.count_group"), ">"):
        _never(comparison)


def give_nothing_back(compiled: Json) -> None:
    """Let the strawman's banks keep the slots of complete sums."""
    for action in _bank_actions(compiled, "give_back"):
        for value in _constants(action):
            if value["value"] == "0x000001":
                value["value"] = "0x000000"


def keep_older_pools(compiled: Json) -> None:
    """Let the slots that were handed out under an older tag stay so under a newer one."""
    for action in _bank_actions(compiled, "unpack"):
        for comparison in _operations(action, "=="):
            if "standing" in json.dumps(comparison["left"]):
                comparison["left"] = comparison["right"]


def abandon_nothing(compiled: Json) -> None:
    """Let a fetch empty its slot, but not end the sum."""
    for action in _bank_actions(compiled, "abandon"):
        for value in _constants(action):
            if value["value"] == "0xffff":
                value["value"] = "0x0000"


def add_what_overflows(compiled: Json) -> None:
    """Let an overflowed feature leave as a sum."""
    for action in _bank_actions(compiled, "overflow"):
        action["primitives"] = [
            step
            for step in action["primitives"]
            if "overflow" not in step["parameters"][0]["value"][-1]
        ]


def forget_the_level(compiled: Json) -> None:
    """Let a partial sum go up with the level of its last feature."""
    action = _action(compiled, "SwitchEgress.departure.make_partial")
    action["primitives"] = [
        step
        for step in action["primitives"]
        if step["parameters"][0]["value"] != ["switchgnn", "level"]
    ]


def ask_no_leaf(compiled: Json) -> None:
    """Let a spine answer the asker, but ask no leaf."""
    _action(compiled, "SwitchIngress.answer.recall_parts")["primitives"] = []


def keep_the_part(compiled: Json) -> None:
    """Let a MISSING from above not bring the part again."""
    _action(compiled, "SwitchIngress.answer.send_part")["primitives"] = []


def report_as_a_worker(compiled: Json) -> None:
    """Let a leaf pass the last DONE up as it is, in the name of its worker."""
    for step in _action(compiled, "SwitchIngress.barrier.report")["primitives"]:
        to = step["parameters"][0]
        if to["value"] == ["switchgnn", "src_id"]:
            step["parameters"][1] = to


def let_anything_have_its_turn(compiled: Json) -> None:
    """Let Turn and Barrier accept tags out of turn."""
    _take_in_place_of(compiled, "0x17")


def agree_with_all(compiled: Json) -> None:
    """Let Barrier accept any next block in a DONE."""
    _take_in_place_of(compiled, "0x18")


def take_every_pulse(compiled: Json) -> None:
    """Take the pulses of all workers from any sender."""
    for node in _nodes(_action(compiled, "SwitchIngress.barrier.pulse.keep")):
        if "worker_bit" in str(node.get("value")) and node.get("type") == "field":
            node.update(type="hexstr", value="0x" + "f" * 32)


def forget_the_width(compiled: Json) -> None:
    """Let slots be narrow in all passes of a packet but the first."""
    for fields in compiled["field_lists"]:
        fields["elements"] = [
            element for element in fields["elements"] if "width" not in str(element["value"])
        ]


def let_nothing_in_early(compiled: Json) -> None:
    """Let features wait for their barrier, even if the last `done`s announce them."""
    for writes in _tags_of_next_turn(compiled):
        writes["early_tag"]["parameters"][2] = writes["turn_tag"]["parameters"][2]


def let_the_round_in_early(compiled: Json) -> None:
    """Let features of any block in as soon as those of its round's first one may come."""
    for comparison in _operations(_ingress(compiled)["conditionals"], ">"):
        if "_early" in str(comparison["right"]["value"]):
            comparison["left"] = _masked(comparison["left"], 0xFFFF_FFFF_FFFF << 32)


def begin_without_the_opening(compiled: Json) -> None:
    """Let the turn skip the opening of a round whose features come early."""
    for action in compiled["actions"]:
        if action["name"] == "SwitchIngress.barrier.next_turn":
            early = action["primitives"][-1]["parameters"]
            turn = [{"type": "register_array", "value": "SwitchIngress.turn_tag"}, *early[1:]]
            action["primitives"].append({**action["primitives"][-1], "parameters": turn})


def announce_in_answers(compiled: Json) -> None:
    """Let the Echo of a `done` stay in its answer."""
    for name in ("answer", "wait", "refuse"):
        for action in compiled["actions"]:
            if action["name"] == f"SwitchIngress.barrier.{name}":
                action["primitives"] = [
                    step
                    for step in action["primitives"]
                    if step["parameters"][0]["value"] != ["switchgnn", "echo"]
                ]


def agree_on_blocks_alone(compiled: Json) -> None:
    """Let Barrier ignore whether the next block is early."""
    for comparison in _operations(_ingress(compiled)["conditionals"], "!="):
        if "barrier_first" in json.dumps(comparison["left"]):
            for side in ("left", "right"):
                comparison[side] = _masked(comparison[side], 0xFFFF_FFFF)


def let_a_leaf_wait(compiled: Json) -> None:
    """Let a leaf forget its workers' announcement of early features."""
    for action in compiled["actions"]:
        for step in action["primitives"]:
            to, value = (step["parameters"] * 2)[:2] if step["op"] == "assign" else ({}, {})
            if to.get("value") == ["scalars", "barrier_next"] and "barrier_first" in str(value):
                step["parameters"][1] = {
                    "type": "expression",
                    "value": _masked(value, 0xFFFF_FFFF),
                }


def restart_with_old_features(compiled: Json) -> None:
    """Let a restarted switch accept forgotten tags, except in features."""
    for action in compiled["actions"]:
        action["primitives"] = [
            step
            for step in action["primitives"]
            if step["op"] != "assign" or "_early" not in str(step["parameters"][0]["value"])
        ]


MISTAKES: dict[str, Callable[[Json], None]] = {
    mistake.__name__: mistake
    for mistake in (
        carry_between_lanes,
        forget_sources,
        overwrite_by_stale,
        believe_checksums,
        count_repeated_done,
        release_nothing,
        forget_newer_groups,
        give_nothing_back,
        keep_older_pools,
        abandon_nothing,
        add_what_overflows,
        forget_the_level,
        ask_no_leaf,
        keep_the_part,
        report_as_a_worker,
        let_anything_have_its_turn,
        agree_with_all,
        take_every_pulse,
        forget_the_width,
        let_nothing_in_early,
        let_the_round_in_early,
        begin_without_the_opening,
        announce_in_answers,
        agree_on_blocks_alone,
        let_a_leaf_wait,
        restart_with_old_features,
    )
}


def with_mistake(program: Program, name: str) -> Program:
    """Return the program with one of the mistakes, under a digest of its own."""
    compiled = json.loads(program.json)
    before = json.dumps(compiled)
    MISTAKES[name](compiled)
    after = json.dumps(compiled)
    if after == before:
        raise ValueError(f"The compiled program has changed: {name} no longer finds its place.")
    return replace(program, json=after.encode(), digest=name.encode().hex().ljust(64, "0"))


def _take_in_place_of(compiled: Json, outcome: str) -> None:
    """Let packets with this outcome stay AGGREGATED."""
    for action in compiled["actions"]:
        for step in action["primitives"]:
            to, value = (step["parameters"] * 2)[:2] if step["op"] == "assign" else ({}, {})
            if "_outcome" in str(to.get("value")) and value.get("value") == outcome:
                value["value"] = "0x00"


def _action(compiled: Json, name: str) -> Json:
    return next(action for action in compiled["actions"] if action["name"] == name)


def _tags_of_next_turn(compiled: Json) -> Iterator[dict[str, Json]]:
    """Yield the steps that write the two tags; p4c copies the action for each call."""
    for action in compiled["actions"]:
        if action["name"] == "SwitchIngress.barrier.next_turn":
            steps = [step for step in action["primitives"] if step["op"] == "register_write"]
            yield {step["parameters"][0]["value"].split(".")[-1]: step for step in steps}


def _masked(value: Json, mask: int) -> Json:
    """Return an operand without the bits that are not in the mask."""
    bits = {"type": "hexstr", "value": hex(mask)}
    return {"type": "expression", "value": {"op": "&", "left": value, "right": bits}}


def _bank_actions(compiled: Json, name: str) -> list[Json]:
    """An action of all banks; p4c copies it for every place where it is called."""
    return [action for action in compiled["actions"] if action["name"].endswith(f".{name}")]


def _ingress(compiled: Json) -> Json:
    return next(part for part in compiled["pipelines"] if part["name"] == "ingress")


def _never(comparison: Json) -> None:
    # 0 > anything.
    comparison["left"] = {"type": "hexstr", "value": "0x0"}


def _nodes(node: Json) -> Iterator[Json]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            yield from _nodes(child)


def _constants(node: Json) -> list[Json]:
    return [found for found in _nodes(node) if found.get("type") == "hexstr"]


def _operations(node: Json, operator: str) -> list[Json]:
    return [found for found in _nodes(node) if found.get("op") == operator and "left" in found]
