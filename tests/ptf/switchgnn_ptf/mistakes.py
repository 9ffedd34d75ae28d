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
    """Add worker bits in place of or-ing them, so that a repeated DONE counts as another."""
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
    """Let what found no slot leave as if it were a sum."""
    for action in _bank_actions(compiled, "overflow"):
        action["primitives"] = [
            step
            for step in action["primitives"]
            if "overflow" not in step["parameters"][0]["value"][-1]
        ]


def forget_the_level(compiled: Json) -> None:
    """Let a partial sum go up with the level of what completed it."""
    action = _action(compiled, "SwitchEgress.departure.make_partial")
    action["primitives"] = [
        step
        for step in action["primitives"]
        if step["parameters"][0]["value"] != ["switchgnn", "level"]
    ]


def ask_no_leaf(compiled: Json) -> None:
    """Let a spine tell who asks what is missing, and nobody else."""
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
    """Let Turn and Barrier take what is out of turn."""
    _take_in_place_of(compiled, "0x17")


def agree_with_all(compiled: Json) -> None:
    """Let Barrier take a DONE whatever it says of what is next."""
    _take_in_place_of(compiled, "0x18")


def take_every_pulse(compiled: Json) -> None:
    """Take the pulses of all workers from whoever speaks."""
    for node in _nodes(_action(compiled, "SwitchIngress.barrier.pulse.keep")):
        if "worker_bit" in str(node.get("value")) and node.get("type") == "field":
            node.update(type="hexstr", value="0x" + "f" * 32)


def forget_the_width(compiled: Json) -> None:
    """Let slots be narrow in all passes of a packet but the first."""
    for fields in compiled["field_lists"]:
        fields["elements"] = [
            element for element in fields["elements"] if "width" not in str(element["value"])
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
    """Let what has this outcome stay AGGREGATED."""
    for action in compiled["actions"]:
        for step in action["primitives"]:
            to, value = (step["parameters"] * 2)[:2] if step["op"] == "assign" else ({}, {})
            if "_outcome" in str(to.get("value")) and value.get("value") == outcome:
                value["value"] = "0x00"


def _action(compiled: Json, name: str) -> Json:
    return next(action for action in compiled["actions"] if action["name"] == name)


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
