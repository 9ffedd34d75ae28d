"""The checker of the part of the switch."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from switchgnn.base.array_types import Bools, Int64s, Integers
from switchgnn.planner.check.files import Arrays, PlanCheckError, RawPlan, require

_BANKS, _MOST_POOLS = 8, 4
_LANES = range(8, 257, 8)
_ROWS = (1, 2, 4, 8)
# Ids from here on name partial sums, or bundles.
_PARTIAL, _BUNDLE = 2**31, 3 * 2**30


@dataclass(frozen=True)
class Deliveries:
    """All additions of the switch: one row per row of a packet and destination, D rows.

    A packet has K rows.
    """

    # [D], K times the index of the packet in `packet_block` and `packet_id`, and the row
    row: Int64s
    result: Int64s  # [D], the index of the destination among the results
    packet_block: Int64s  # [P], ascending with packet_id
    packet_id: Int64s  # [P], the id on the wire
    packet_count: Int64s  # [P], the Count of the packet


def check_switch(plan: RawPlan) -> Deliveries:
    """Check entries, slots, counts and owners; return the additions."""
    switch = plan.switch
    _check_lengths(switch)
    _check_sources(plan)
    _check_results(plan)
    packet = _check_entries(plan)
    entry, bank = np.nonzero(switch["entry_expected"])
    idle = switch["entry_expected"] == 0
    require(not np.any(switch["entry_slot"][idle]), "An entry names a slot of a bank it skips.")
    require(not np.any(switch["entry_row"][idle]), "An entry names a row for a bank it skips.")
    rows = _rows_of(plan)
    inside = np.all(switch["entry_row"] < rows)
    require(inside, f"An entry adds a row beyond the {rows} of a frame.")
    slots = _result_key(switch["result_block"], switch["result_bank"], switch["result_slot"])
    wanted = _result_key(switch["entry_block"][entry], bank, switch["entry_slot"][entry, bank])
    result = _find(slots, wanted)
    lost = np.flatnonzero(result < 0)
    if len(lost):
        at = entry[lost[0]]
        raise PlanCheckError(
            f"Source {switch['entry_source'][at]} adds to slot {switch['entry_slot'][at].max()} of "
            f"bank {bank[lost[0]]} in block {switch['entry_block'][at]}, which is nobody's."
        )
    agree = switch["entry_expected"][entry, bank] == switch["result_expected"][result]
    _require_all(agree, entry, switch, "expects another count of its slot than its result does")
    _check_counts(switch, entry, result)
    _check_leaves_and_spines(plan, switch["entry_source"][entry], result)
    first = np.flatnonzero(np.diff(packet, prepend=-1))
    return Deliveries(
        row=packet[entry] * rows + switch["entry_row"][entry, bank],
        result=result,
        packet_block=switch["entry_block"][first].astype(np.int64),
        packet_id=switch["entry_source"][first].astype(np.int64),
        packet_count=switch["entry_count"][first].astype(np.int64),
    )


def _check_lengths(switch: Arrays) -> None:
    for prefix in ("source", "entry", "result"):
        names = [name for name in switch if name.startswith(prefix)]
        lengths = {len(switch[name]) for name in names}
        require(len(lengths) == 1, f"switch.safetensors: arrays {prefix}_* differ in length.")
    rows = len(switch["entry_block"])
    for name, array in switch.items():
        table = name in ("entry_slot", "entry_expected", "entry_row")
        shape = (rows, _BANKS) if table else (len(array),)
        require(array.shape == shape, f"switch.safetensors: {name} has shape {array.shape}.")


def _check_sources(plan: RawPlan) -> None:
    ids = plan.switch["source_vertex"].astype(np.int64)
    owner = plan.switch["source_worker"].astype(np.int64)
    require(np.all(np.diff(ids) > 0), "switch.safetensors: source_vertex is not ascending.")
    plain = ids < _PARTIAL
    require(np.all(ids[plain] < len(plan.assignment)), "A source is no vertex of the graph.")
    wrong = np.flatnonzero(plan.assignment[ids[plain]] != owner[plain])
    if len(wrong):
        vertex = ids[plain][wrong[0]]
        raise PlanCheckError(f"Source {vertex} has another owner in the switch.")
    workers = len(plan.workers)
    require(np.all(owner < workers), f"A source belongs to no worker of 0..{workers - 1}.")


def _check_results(plan: RawPlan) -> None:
    switch, manifest = plan.switch, plan.manifest
    block, vertex = switch["result_block"].astype(np.int64), switch["result_vertex"]
    bank, slot = switch["result_bank"], switch["result_slot"].astype(np.int64)
    _check_blocks(block, manifest["blocks"], "A result")
    lanes = manifest["lanes"]
    require(lanes in _LANES, f"plan.json: no frame carries {lanes} numbers.")
    require(np.all(bank < _BANKS), f"A result is in a bank beyond {_BANKS - 1}.")
    if manifest["strategy"]["blocks"] != "strawman":
        per_bank, room = _of_pool(manifest)
        over = _leaves_and_spines(plan)
        inside = bool(over) or np.all(slot < per_bank)
        require(inside, f"A result is in a slot beyond {per_bank - 1} of its pool.")
        wide = _banks_of(lanes)
        aligned = np.all(bank % wide == 0)
        require(aligned, f"A slot of {lanes} numbers begins inside another one.")
        if not over:
            fullest = int(np.bincount(block).max(initial=0))
            enough = fullest * wide <= room
            require(enough, f"A block has {fullest} destinations for {room} slots of a pool.")
    keys = _result_key(block, bank, slot)
    require(np.all(np.diff(keys) >= 0), "switch.safetensors: results are not sorted.")
    require(np.all(np.diff(keys) != 0), "Two destinations of one block share a slot.")
    require(np.all(vertex < len(plan.assignment)), "A result is for no vertex of the graph.")
    owns = plan.assignment[vertex] == switch["result_worker"]
    if not np.all(owns):
        wrong = vertex[np.argmin(owns)]
        raise PlanCheckError(f"The sum of vertex {wrong} goes to a wrong worker.")
    pairs = np.sort((block << 32) | vertex)
    require(np.all(np.diff(pairs) != 0), "A vertex has two results in one block.")


def _of_pool(manifest: dict[str, Any]) -> tuple[int, int]:
    """Return the slots of a pool in a bank, and those that a block may use."""
    slots, pools = manifest["slots"], manifest["pools"]
    require(1 <= pools <= _MOST_POOLS, f"plan.json: {pools} pools are not 1 to {_MOST_POOLS}.")
    per_bank = max(1, -(-slots // _BANKS) // pools)
    right = manifest["slots_per_bank"] == per_bank * pools
    require(right, "plan.json: slots_per_bank is not slots/8 in equal pools.")
    return per_bank, min(per_bank * _BANKS, slots // pools)


def _banks_of(lanes: int) -> int:
    """Return the banks of a slot: 1, 2, 4 or 8, of 32 numbers each."""
    return next(each for each in (1, 2, 4, 8) if lanes <= 32 * each)


def _rows_of(plan: RawPlan) -> int:
    """Return the rows of a packet; check that those with several are bundles, and others not."""
    rows, lanes = plan.manifest["rows"], plan.manifest["lanes"]
    right = rows in _ROWS and rows * lanes <= _LANES[-1]
    require(right, f"plan.json: no frame has {rows} rows of {lanes} numbers.")
    bundled = plan.switch["entry_source"] >= _BUNDLE
    right = np.all(bundled) if rows > 1 else not np.any(bundled)
    require(right, "An entry is for a bundle where there are none, or for another packet.")
    return int(rows)


def _leaves_and_spines(plan: RawPlan) -> tuple[int, int] | None:
    name = str(plan.manifest["strategy"]["blocks"])
    found = re.fullmatch(r"[a-z-]+:([1-9]\d{0,2}):(\d{1,3})", name)
    require(":" not in name or found is not None, "plan.json: the blocks have a strange name.")
    return None if found is None else (int(found[1]), int(found[2]))


def _check_leaves_and_spines(plan: RawPlan, source: Integers, result: Int64s) -> None:
    over = _leaves_and_spines(plan)
    if over is None:
        return
    leaves, spines = over
    switch, workers = plan.switch, len(plan.workers)
    require(leaves <= workers, f"The blocks are for {leaves} leaves, and there are fewer workers.")
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
    room = _of_pool(plan.manifest)[1] // _banks_of(plan.manifest["lanes"])
    require(fullest <= room, f"A block takes {fullest} slots of one switch, which has {room}.")


def _check_entries(plan: RawPlan) -> Int64s:
    """Check keys, hops and counts of the entries; return the packet of each, int64[K]."""
    switch = plan.switch
    block, source = switch["entry_block"].astype(np.int64), switch["entry_source"]
    hop, last = switch["entry_hop"].astype(np.int64), switch["entry_last"]
    _check_blocks(block, plan.manifest["blocks"], "An entry")
    known = _find(switch["source_vertex"].astype(np.int64), source.astype(np.int64)) >= 0
    _require_all(known, np.arange(len(source)), switch, "is not among the sources")
    key = (block << 32) | source
    require(np.all(np.diff(key) >= 0), "switch.safetensors: entries are not sorted.")
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
    _require_all(same & (count > 0), np.arange(len(hop)), switch, "changes its Count between hops")
    return packet


def _check_counts(switch: Arrays, entry: Int64s, result: Int64s) -> None:
    arriving = np.zeros(len(switch["result_block"]), dtype=np.int64)
    np.add.at(arriving, result, switch["entry_count"][entry].astype(np.int64))
    wrong = np.flatnonzero(arriving != switch["result_expected"])
    if len(wrong):
        at = wrong[0]
        raise PlanCheckError(
            f"The slot of vertex {switch['result_vertex'][at]} in block "
            f"{switch['result_block'][at]} expects {switch['result_expected'][at]}, but its "
            f"packets carry {arriving[at]}."
        )


def _check_blocks(block: Int64s, blocks: int, what: str) -> None:
    inside = np.all((block >= 1) & (block <= blocks))
    require(inside, f"{what} is of a block outside 1..{blocks}.")


def _require_all(holds: Bools, entry: Int64s, switch: Arrays, problem: str) -> None:
    if np.all(holds):
        return
    at = entry[np.argmin(holds)]
    raise PlanCheckError(
        f"Source {switch['entry_source'][at]} of block {switch['entry_block'][at]} {problem}."
    )


def _result_key(block: Integers, bank: Integers, slot: Integers) -> Int64s:
    """Return one number per (block, bank, slot) that sorts like them: 16, 4 and 32 bits."""
    high = (block.astype(np.int64) << 4) | bank.astype(np.int64)
    key: Int64s = (high << 32) | slot.astype(np.int64)
    return key


def _find(keys: Int64s, wanted: Int64s) -> Int64s:
    """Return the index of each in sorted keys, or -1."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[index] == wanted, index, -1).astype(np.int64)
