# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A switch and its workers, as slow and as plain as possible: the judge of whole plans."""

import numpy as np

from switchgnn.planner import Direction


class ReplayError(Exception):
    """The plan does not make a working exchange."""


def replay(plan, features, shuffle_seed=0, direction=Direction.FORWARD):
    """Run one exchange of whole feature vectors over `plan`; returns the sums, int64[V, F].

    Workers are interleaved at random; each keeps its own order.
    """
    rng = np.random.default_rng(shuffle_seed)
    total = np.zeros_like(features)
    for block in plan.manifest.direction(direction).block_numbers:
        arrived = [{} for _ in plan.workers]
        slots = {}
        for source in _interleave(plan, block, rng):
            _through_switch(plan.switch, block, source, features[source], slots, arrived)
        for part in plan.workers:
            _receive(part, block, arrived[part.worker], total)
    return total


def check(plan, features, expected, shuffle_seed=0, direction=Direction.FORWARD):
    """Raise ReplayError unless the plan delivers exactly `expected`."""
    if not np.array_equal(replay(plan, features, shuffle_seed, direction), expected):
        raise ReplayError("wrong sums")


def _interleave(plan, block, rng):
    queues = []
    for part in plan.workers:
        rows = slice(part.send_indptr[block - 1], part.send_indptr[block])
        sent = part.send_source[rows].tolist()
        if part.vertices[part.send_row[rows]].tolist() != sent:
            raise ReplayError("send_row and send_source disagree")
        queues.append(sent)
    turns = np.repeat(np.arange(len(queues)), [len(q) for q in queues])
    iterators = [iter(q) for q in queues]
    for turn in rng.permutation(turns):
        yield next(iterators[turn])


def _through_switch(switch, block, source, feature, slots, arrived):
    hop = 0
    while True:
        key = (switch.entry_block == block) & (switch.entry_source == source)
        rows = np.flatnonzero(key & (switch.entry_hop == hop))
        if len(rows) != 1:
            raise ReplayError(f"{len(rows)} entries for {block, source, hop}")
        row = rows[0]
        for bank in range(8):
            expected = int(switch.entry_expected[row, bank])
            if expected:
                where = (bank, int(switch.entry_slot[row, bank]))
                _add(switch, block, where, feature, expected, slots, arrived)
        if switch.entry_last[row]:
            return
        hop += 1


def _add(switch, block, where, feature, expected, slots, arrived):
    value, count = slots.get(where, (0, 0))
    value, count = value + feature, count + 1
    slots[where] = (value, count)
    if count > expected:
        raise ReplayError(f"slot {where} overfull")
    if count < expected:
        return
    rows = np.flatnonzero(
        (switch.result_block == block)
        & (switch.result_bank == where[0])
        & (switch.result_slot == where[1])
    )
    if len(rows) != 1:
        raise ReplayError(f"{len(rows)} results for {block, where}")
    inbox = arrived[switch.result_worker[rows[0]]]
    vertex = int(switch.result_vertex[rows[0]])
    if vertex in inbox:
        raise ReplayError(f"two sums for {vertex}")
    inbox[vertex] = (value, count)


def _receive(part, block, inbox, total):
    rows = range(part.receive_indptr[block - 1], part.receive_indptr[block])
    if sorted(inbox) != part.receive_vertex[rows.start : rows.stop].tolist():
        raise ReplayError(f"worker {part.worker} expects other sums than arrive")
    for row in rows:
        vertex = int(part.receive_vertex[row])
        value, count = inbox[vertex]
        if count != part.receive_count[row]:
            raise ReplayError(f"Count {count} for vertex {vertex}")
        total[part.vertices[part.receive_row[row]]] += value
