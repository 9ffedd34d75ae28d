# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The checker of the part of the switch, and of the parts of leaves and spines."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.check.files import Arrays, PlanCheckError, RawPlan, require
from switchgnn.planner.plan.leaf_spine import LeafSpinePart, LeafSpineParts
from switchgnn.planner.plan.plan import Plan, SwitchPart

_BANKS = 8
_LANES = (8, 16, 32, 64, 128, 256)
# Ids from here on name partial sums.
_PARTIAL = 2**31


@dataclass(frozen=True)
class Deliveries:
    """All additions of the switch: one row per packet and destination, D rows."""

    packet: NDArray[np.int64]  # [D], the place of the packet in `packet_block` and `packet_id`
    result: NDArray[np.int64]  # [D], the place of the destination among the results
    packet_block: NDArray[np.int64]  # [P], ascending with packet_id
    packet_id: NDArray[np.int64]  # [P], the id on the wire
    packet_count: NDArray[np.int64]  # [P], the Count of the packet


def check_switch(plan: RawPlan) -> Deliveries:
    """Check entries, slots, counts and owners; return the additions."""
    switch = plan.switch
    _check_lengths(switch)
    _check_sources(plan)
    _check_results(plan)
    packet = _check_entries(plan)
    entry, bank = np.nonzero(switch["entry_expected"])
    idle = switch["entry_expected"] == 0
    require(not np.any(switch["entry_slot"][idle]), "an entry names a slot of a bank it leaves out")
    slots = _result_key(switch["result_block"], switch["result_bank"], switch["result_slot"])
    wanted = _result_key(switch["entry_block"][entry], bank, switch["entry_slot"][entry, bank])
    result = _find(slots, wanted)
    lost = np.flatnonzero(result < 0)
    if len(lost):
        at = entry[lost[0]]
        raise PlanCheckError(
            f"source {switch['entry_source'][at]} adds to slot {switch['entry_slot'][at].max()} of "
            f"bank {bank[lost[0]]} in block {switch['entry_block'][at]}, which is nobody's"
        )
    agree = switch["entry_expected"][entry, bank] == switch["result_expected"][result]
    _require_all(agree, entry, switch, "expects another count of its slot than its result does")
    _check_counts(switch, entry, result)
    _check_leaves_and_spines(plan, switch["entry_source"][entry], result)
    first = np.flatnonzero(np.diff(packet, prepend=-1))
    return Deliveries(
        packet=packet[entry],
        result=result,
        packet_block=switch["entry_block"][first].astype(np.int64),
        packet_id=switch["entry_source"][first].astype(np.int64),
        packet_count=switch["entry_count"][first].astype(np.int64),
    )


def _check_lengths(switch: Arrays) -> None:
    for prefix in ("source", "entry", "result"):
        names = [name for name in switch if name.startswith(prefix)]
        lengths = {len(switch[name]) for name in names}
        require(len(lengths) == 1, f"switch.safetensors: arrays {prefix}_* differ in length")
    rows = len(switch["entry_block"])
    for name, array in switch.items():
        shape = (rows, _BANKS) if name in ("entry_slot", "entry_expected") else (len(array),)
        require(array.shape == shape, f"switch.safetensors: {name} has shape {array.shape}")


def _check_sources(plan: RawPlan) -> None:
    ids = plan.switch["source_vertex"].astype(np.int64)
    owner = plan.switch["source_worker"].astype(np.int64)
    require(np.all(np.diff(ids) > 0), "switch.safetensors: source_vertex is not ascending")
    plain = ids < _PARTIAL
    require(np.all(ids[plain] < len(plan.assignment)), "a source is no vertex of the graph")
    wrong = np.flatnonzero(plan.assignment[ids[plain]] != owner[plain])
    if len(wrong):
        vertex = ids[plain][wrong[0]]
        raise PlanCheckError(f"source {vertex} has another owner in the switch")
    workers = len(plan.workers)
    require(np.all(owner < workers), f"a source belongs to no worker of 0..{workers - 1}")


def _check_results(plan: RawPlan) -> None:
    switch, manifest = plan.switch, plan.manifest
    block, vertex = switch["result_block"].astype(np.int64), switch["result_vertex"]
    bank, slot = switch["result_bank"], switch["result_slot"].astype(np.int64)
    _check_blocks(block, manifest["blocks"], "a result")
    lanes = manifest.get("lanes", 32)
    require(lanes in _LANES, f"plan.json: no frame carries {lanes} numbers")
    require(np.all(bank < _BANKS), f"a result is in a bank beyond {_BANKS - 1}")
    if manifest["strategy"]["blocks"] != "strawman":
        per_bank = -(-manifest["slots"] // _BANKS)
        require(manifest["slots_per_bank"] == per_bank, "plan.json: slots_per_bank is not slots/8")
        over = _leaves_and_spines(plan)
        inside = bool(over) or np.all(slot < per_bank)
        require(inside, f"a result is in a slot beyond {per_bank - 1}")
        wide = max(1, lanes // 32)
        beside = f"a slot of {lanes} numbers begins inside of another one"
        require(np.all(bank % wide == 0), beside)
        if not over:
            fullest = int(np.bincount(block).max(initial=0))
            require(
                fullest * wide <= manifest["slots"],
                f"a block has {fullest} destinations for {manifest['slots']} slots",
            )
    keys = _result_key(block, bank, slot)
    require(np.all(np.diff(keys) >= 0), "switch.safetensors: results are not sorted")
    require(np.all(np.diff(keys) != 0), "two destinations of one block share a slot")
    require(np.all(vertex < len(plan.assignment)), "a result is for no vertex of the graph")
    owns = plan.assignment[vertex] == switch["result_worker"]
    if not np.all(owns):
        wrong = vertex[np.argmin(owns)]
        raise PlanCheckError(f"the sum of vertex {wrong} goes to a wrong worker")
    pairs = np.sort((block << 32) | vertex)
    require(np.all(np.diff(pairs) != 0), "a vertex has two results in one block")


def _leaves_and_spines(plan: RawPlan) -> tuple[int, int] | None:
    name = str(plan.manifest["strategy"]["blocks"])
    found = re.fullmatch(r"[a-z-]+:([1-9]\d{0,2}):(\d{1,3})", name)
    require(":" not in name or found is not None, "plan.json: the blocks have a strange name")
    return None if found is None else (int(found[1]), int(found[2]))


def _check_leaves_and_spines(
    plan: RawPlan, source: NDArray[np.integer], result: NDArray[np.int64]
) -> None:
    over = _leaves_and_spines(plan)
    if over is None:
        return
    leaves, spines = over
    switch, workers = plan.switch, len(plan.workers)
    require(leaves <= workers, f"the blocks are for {leaves} leaves, and there are fewer workers")
    leaf_of = np.arange(workers) * leaves // workers
    owner = np.searchsorted(switch["source_vertex"], source)
    sender = leaf_of[switch["source_worker"][owner]]
    home = leaf_of[switch["result_worker"]]
    block = switch["result_block"].astype(np.int64)
    rows = len(block)
    crosses = np.unique(result[sender != home[result]])
    taken = [sender * rows + result]
    if spines:
        taken.append((leaves + switch["result_vertex"][crosses] % spines) * rows + crosses)
    else:
        taken.append(home[crosses] * rows + crosses)
    pairs = np.unique(np.concatenate(taken).astype(np.int64))
    last = int(block.max(initial=0)) + 1
    fullest = int(
        np.bincount(pairs // max(rows, 1) * last + block[pairs % max(rows, 1)]).max(initial=0)
    )
    room = plan.manifest["slots"] // max(1, plan.manifest.get("lanes", 32) // 32)
    require(fullest <= room, f"a block takes {fullest} slots of one switch, which has {room}")


def _check_entries(plan: RawPlan) -> NDArray[np.int64]:
    """Check keys, hops and counts of the entries; return the packet of each, int64[K]."""
    switch = plan.switch
    block, source = switch["entry_block"].astype(np.int64), switch["entry_source"]
    hop, last = switch["entry_hop"].astype(np.int64), switch["entry_last"]
    _check_blocks(block, plan.manifest["blocks"], "an entry")
    known = _find(switch["source_vertex"].astype(np.int64), source.astype(np.int64)) >= 0
    _require_all(known, np.arange(len(source)), switch, "is not among the sources")
    key = (block << 32) | source
    require(np.all(np.diff(key) >= 0), "switch.safetensors: entries are not sorted")
    new = np.diff(key, prepend=-1) != 0
    ends = np.append(new[1:], True)[: len(new)]
    right = np.where(new, hop == 0, hop == np.append(0, hop[:-1])[: len(hop)] + 1)
    _require_all(right, np.arange(len(hop)), switch, "has hops that are not 0, 1, 2, ...")
    _require_all(last == ends, np.arange(len(hop)), switch, "ends at a hop that is not its last")
    used = np.any(switch["entry_expected"] > 0, axis=1)
    _require_all(used, np.arange(len(hop)), switch, "has a pass that adds nothing")
    packet = np.cumsum(new) - 1
    first = np.flatnonzero(new)
    count = switch["entry_count"]
    same = count == count[first[packet]] if len(first) else np.ones(0, dtype=bool)
    _require_all(same & (count > 0), np.arange(len(hop)), switch, "changes its Count on its way")
    return packet


def _check_counts(switch: Arrays, entry: NDArray[np.int64], result: NDArray[np.int64]) -> None:
    arriving = np.zeros(len(switch["result_block"]), dtype=np.int64)
    np.add.at(arriving, result, switch["entry_count"][entry].astype(np.int64))
    wrong = np.flatnonzero(arriving != switch["result_expected"])
    if len(wrong):
        at = wrong[0]
        raise PlanCheckError(
            f"the slot of vertex {switch['result_vertex'][at]} in block "
            f"{switch['result_block'][at]} expects {switch['result_expected'][at]}, but its "
            f"packets carry {arriving[at]}"
        )


def _check_blocks(block: NDArray[np.int64], blocks: int, what: str) -> None:
    inside = np.all((block >= 1) & (block <= blocks))
    require(inside, f"{what} is of a block outside 1..{blocks}")


def _require_all(
    holds: NDArray[np.bool_], entry: NDArray[np.int64], switch: Arrays, problem: str
) -> None:
    if np.all(holds):
        return
    at = entry[np.argmin(holds)]
    raise PlanCheckError(
        f"source {switch['entry_source'][at]} of block {switch['entry_block'][at]} {problem}"
    )


def _result_key(
    block: NDArray[np.integer], bank: NDArray[np.integer], slot: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return one number per (block, bank, slot) that sorts like them: 16, 4 and 32 bits."""
    high = (block.astype(np.int64) << 4) | bank.astype(np.int64)
    key: NDArray[np.int64] = (high << 32) | slot.astype(np.int64)
    return key


def _find(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each in sorted keys, or -1."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1).astype(np.int64)


_NOBODY = 65535

# A contribution is (block, Src_id, destination, Count), a destination (block, vertex).
Contribution = tuple[int, int, int, int]
Destination = tuple[int, int]


def check_leaf_spine(plan: Plan, parts: LeafSpineParts) -> None:
    """Check that leaves and spines add what the plan's single switch adds, each edge once.

    Every contribution is made in its worker's leaf. An incomplete sum goes up as one partial sum,
    which the spine accepts from that leaf, with that Count, for that destination only. Every sum is
    complete in one switch and goes to its worker. No slot is used twice in a block. Recalls,
    fetches and fetched features find their way.
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
        _check_leaf_sources(leaf, {s: w for s, w in owner.items() if leaf_of[w] == leaf.number})
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
    require(np.all(switch.result_slot < per_bank), f"a slot is beyond {per_bank - 1}")
    expected: dict[tuple[int, int], int] = {}
    for block, _, vertex, count in _contributions(switch):
        expected[block, vertex] = expected.get((block, vertex), 0) + count
    said = dict(zip(_destinations(switch), switch.result_expected.tolist(), strict=True))
    require(said == expected, "a slot expects another Count than its packets bring")


def _contributions(switch: SwitchPart) -> set[Contribution]:
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


def _check_leaf_sources(leaf: LeafSpinePart, owner: dict[int, int]) -> None:
    known = zip(leaf.switch.source_vertex.tolist(), leaf.switch.source_worker, strict=True)
    said = {source: leaf.below[neighbour] for source, neighbour in known}
    require(said == owner, f"leaf {leaf.number} does not know exactly what its workers send")


def _partial_sums(parts: LeafSpineParts) -> dict[tuple[int, int, int], tuple[int, int, int]]:
    """Map (spine, block, Src_id) of each partial sum to (leaf, destination, Count)."""
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
