# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The independent checker of a leaf-spine: do its switches together do what one would?

It looks at the arrays alone, and shares no code with the module that makes them.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.check.files import require
from switchgnn.planner.plan.leaf_spine import LeafSpinePart, LeafSpineParts
from switchgnn.planner.plan.plan import Plan, SwitchPart

_BANKS = 8
_PARTIAL = 2**31
_NOBODY = 65535

# A contribution is (block, Src_id, destination, Count), a destination (block, vertex).
Contribution = tuple[int, int, int, int]
Destination = tuple[int, int]


def check_leaf_spine(plan: Plan, parts: LeafSpineParts) -> None:
    """Check that leaves and spines add what the plan's single switch adds, each edge once.

    Every contribution of the plan is made in its worker's leaf; what is not complete there goes
    up as one partial sum, which the spine takes from that leaf with that Count, for that
    destination only; every sum is complete in one switch and goes to its worker; no slot is
    used twice in a block; and recalls, fetches and fetched features find their way.

    Raises:
        PlanCheckError: the first thing that is wrong.
    """
    leaf_of = parts.leaf_spine.leaf_of_worker
    for part in parts.switches:
        _check_slots(plan, part)
    wanted = _contributions(plan.switch)
    made = {leaf.number: _contributions(leaf.switch) for leaf in parts.leaves}
    owner = dict(zip(plan.switch.source_vertex.tolist(), plan.switch.source_worker, strict=True))
    for leaf in parts.leaves:
        own = {each for each in wanted if leaf_of[owner[each[1]]] == leaf.number}
        require(made[leaf.number] == own, f"leaf {leaf.number} adds what its workers do not send")
        _check_sources(leaf, {s: w for s, w in owner.items() if leaf_of[w] == leaf.number})
    up = _partial_sums(parts)
    for spine in parts.spines:
        _check_spine(spine, {key: value for key, value in up.items() if key[0] == spine.number})
        _check_known(spine, owner, leaf_of)
    _check_complete(plan, parts)
    for leaf in parts.leaves:
        _check_leaf_routes(plan, parts, leaf)
    for spine in parts.spines:
        _check_spine_routes(plan, parts, spine)


def _check_slots(plan: Plan, part: LeafSpinePart) -> None:
    switch = part.switch
    keys = list(zip(switch.result_block, switch.result_bank, switch.result_slot, strict=True))
    require(keys == sorted(set(keys)), "two destinations of a block share a slot of a switch")
    per_bank = -(-plan.manifest.slots // _BANKS)
    require(bool(np.all(switch.result_slot < per_bank)), f"a slot is beyond {per_bank - 1}")
    expected: dict[tuple[int, int], int] = {}
    for block, _, vertex, count in _contributions(switch):
        expected[block, vertex] = expected.get((block, vertex), 0) + count
    said = dict(zip(_destinations(switch), switch.result_expected.tolist(), strict=True))
    require(said == expected, "a slot expects another Count than its packets bring")


def _contributions(switch: SwitchPart) -> set[Contribution]:
    """Return all that a switch adds, and check that nothing is added twice."""
    place = {
        key: at
        for at, key in enumerate(
            zip(
                switch.result_block.tolist(),
                switch.result_bank.tolist(),
                switch.result_slot.tolist(),
                strict=True,
            )
        )
    }
    found = []
    for entry, bank in zip(*np.nonzero(switch.entry_expected), strict=True):
        block, source = int(switch.entry_block[entry]), int(switch.entry_source[entry])
        at = place.get((block, int(bank), int(switch.entry_slot[entry, bank])), -1)
        require(at >= 0, f"source {source} of block {block} adds to a slot that is nobody's")
        require(
            switch.entry_expected[entry, bank] == switch.result_expected[at],
            f"source {source} of block {block} expects another count than the slot's result",
        )
        vertex, count = int(switch.result_vertex[at]), int(switch.entry_count[entry])
        found.append((block, source, vertex, count))
    require(len({each[:3] for each in found}) == len(found), "a packet adds to a slot twice")
    return set(found)


def _check_sources(leaf: LeafSpinePart, owner: dict[int, int]) -> None:
    known = zip(leaf.switch.source_vertex.tolist(), leaf.switch.source_worker, strict=True)
    said = {source: leaf.below[neighbour] for source, neighbour in known}
    require(said == owner, f"leaf {leaf.number} does not know exactly what its workers send")


def _partial_sums(parts: LeafSpineParts) -> dict[tuple[int, int, int], tuple[int, int, int]]:
    """Return what goes up: (spine, block, Src_id) to (leaf, destination, Count)."""
    up: dict[tuple[int, int, int], tuple[int, int, int]] = {}
    for leaf in parts.leaves:
        switch = leaf.switch
        for at in np.flatnonzero(leaf.result_partial):
            spine = int(switch.result_worker[at]) - len(leaf.below)
            name = int(leaf.result_partial[at])
            require(0 <= spine < leaf.above, f"a partial sum of leaf {leaf.number} goes nowhere")
            require(name >= _PARTIAL, f"leaf {leaf.number} sends a partial sum as a vertex")
            key = (spine, int(switch.result_block[at]), name)
            require(key not in up, f"two partial sums of block {key[1]} are {name}")
            up[key] = (leaf.number, int(switch.result_vertex[at]), int(switch.result_expected[at]))
    return up


def _check_spine(
    spine: LeafSpinePart, up: dict[tuple[int, int, int], tuple[int, int, int]]
) -> None:
    added = {(b, s): (v, c) for b, s, v, c in _contributions(spine.switch)}
    sent = {(b, s): (v, c) for (_, b, s), (_, v, c) in up.items()}
    require(added == sent, f"spine {spine.number} adds other partial sums than are sent to it")
    leaf = dict(zip(spine.switch.source_vertex.tolist(), spine.switch.source_worker, strict=True))
    for (_, _, name), (number, _, _) in up.items():
        require(leaf.get(name) == number, f"partial sum {name} comes from another leaf")


def _check_known(spine: LeafSpinePart, owner: dict[int, int], leaf_of: tuple[int, ...]) -> None:
    """Check that the spine finds the leaf of every vertex, since any may be fetched."""
    switch = spine.switch
    leaf = dict(zip(switch.source_vertex.tolist(), switch.source_worker, strict=True))
    for source, worker in owner.items():
        if source < _PARTIAL:
            right = leaf.get(source) == leaf_of[worker]
            require(right, f"spine {spine.number} does not find the worker of vertex {source}")


def _check_complete(plan: Plan, parts: LeafSpineParts) -> None:
    expected = dict(
        zip(_destinations(plan.switch), plan.switch.result_expected.tolist(), strict=True)
    )
    complete: dict[Destination, int] = {}
    for part in parts.switches:
        whole = part.result_partial == 0
        for key, is_whole, count in zip(
            _destinations(part.switch), whole, part.switch.result_expected.tolist(), strict=True
        ):
            require(not (is_whole and key in complete), f"the sum of {key[1]} is made twice")
            if is_whole:
                complete[key] = count
    require(complete == expected, "the switches complete other sums than the plan's")


def _check_leaf_routes(plan: Plan, parts: LeafSpineParts, leaf: LeafSpinePart) -> None:
    crossing = {key for spine in parts.spines for key in _destinations(spine.switch)}
    spine_of = {key: spine.number for spine in parts.spines for key in _destinations(spine.switch)}
    routes = _routes(leaf)
    local = set(_destinations(leaf.switch))
    for key, worker in _owners(plan).items():
        own = worker in leaf.below
        require((key in routes) == (own or key in local), f"leaf {leaf.number} and {key}")
        if key not in routes:
            continue
        up = len(leaf.below) + spine_of.get(key, 0)
        towards, above, result = routes[key]
        there = leaf.below.index(worker) if own else up
        require(towards == there, f"leaf {leaf.number} sends {key} to a wrong neighbour")
        completes = up if key in crossing else _NOBODY
        require(above == completes, f"leaf {leaf.number} asks a wrong switch for {key}")
        _check_slot_of(leaf, key, result, known=key in local)
        if key in local and key not in crossing:
            got = leaf.switch.result_worker[result]
            require(got == there, f"leaf {leaf.number} sends the sum of {key} to a wrong worker")


def _check_spine_routes(plan: Plan, parts: LeafSpineParts, spine: LeafSpinePart) -> None:
    routes, owners = _routes(spine), _owners(plan)
    local = set(_destinations(spine.switch))
    require(set(routes) == local, f"spine {spine.number} routes what it does not sum")
    for key, (towards, above, result) in routes.items():
        leaf = parts.leaf_spine.leaf_of_worker[owners[key]]
        require(towards == leaf, f"spine {spine.number} sends {key} to a wrong leaf")
        require(above == _NOBODY, f"spine {spine.number} asks another switch for {key}")
        _check_slot_of(spine, key, result, known=True)
        require(
            spine.switch.result_worker[result] == leaf,
            f"spine {spine.number} sends the sum of {key} to a wrong leaf",
        )


def _check_slot_of(part: LeafSpinePart, key: Destination, result: int, *, known: bool) -> None:
    if not known:
        require(result == -1, f"{key} has no slot in the switch, but its route names one")
        return
    found = int(part.switch.result_block[result]), int(part.switch.result_vertex[result])
    require(result >= 0 and found == key, f"the route of {key} names a wrong slot")


def _routes(part: LeafSpinePart) -> dict[Destination, tuple[int, int, int]]:
    keys = list(zip(part.route_block.tolist(), part.route_vertex.tolist(), strict=True))
    require(keys == sorted(set(keys)), "the routes of a switch are not sorted")
    values = zip(
        part.route_neighbour.tolist(),
        part.route_above.tolist(),
        part.route_result.tolist(),
        strict=True,
    )
    return dict(zip(keys, values, strict=True))


def _owners(plan: Plan) -> dict[Destination, int]:
    keys: Iterable[Destination] = _destinations(plan.switch)
    workers: NDArray[np.uint16] = plan.switch.result_worker
    return dict(zip(keys, workers.tolist(), strict=True))


def _destinations(switch: SwitchPart) -> list[Destination]:
    return list(zip(switch.result_block.tolist(), switch.result_vertex.tolist(), strict=True))
