# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Leaves and spines, as slow and as plain as `planner_switch_model`, of which they are made."""

from dataclasses import dataclass, replace

import numpy as np

from switchgnn.planner import Direction
from tests.planner.switch_model import Packet, ReplayError, _interleave, _receive, _through_switch


@dataclass(frozen=True)
class Replayed:
    """What arrived, and what crossed: packets by leaf, then spine."""

    sums: np.ndarray
    partial_sums: np.ndarray
    sums_down: np.ndarray


def replay_leaf_spine(plan, parts, features, direction=Direction.FORWARD):
    rng = np.random.default_rng(1)
    leaf_spine = parts.leaf_spine
    total = np.zeros_like(features)
    up = np.zeros((leaf_spine.leaves, leaf_spine.spines), dtype=int)
    down = np.zeros((leaf_spine.leaves, leaf_spine.spines), dtype=int)
    for block in plan.manifest.direction(direction).block_numbers:
        arrived = [{} for _ in plan.workers]
        at_leaf = [_inboxes(leaf) for leaf in parts.leaves]
        slots = [{} for _ in parts.leaves]
        for packet in _interleave(plan, block, features, rng):
            leaf = leaf_spine.leaf_of_worker[packet.worker]
            part = parts.leaves[leaf]
            local = replace(packet, worker=part.below.index(packet.worker))
            _through_switch(part.switch, block, local, slots[leaf], at_leaf[leaf])
        partial = [[] for _ in parts.spines]
        for leaf, inboxes in zip(parts.leaves, at_leaf, strict=True):
            for place, worker in enumerate(leaf.below):
                arrived[worker].update(inboxes[place])
            for spine, inbox in enumerate(inboxes[len(leaf.below) :]):
                up[leaf.number, spine] += len(inbox)
                partial[spine] += _partial_sums(leaf, block, inbox)
        for spine, packets in zip(parts.spines, partial, strict=True):
            inboxes, there = _inboxes(spine), {}
            for at in rng.permutation(len(packets)):
                _through_switch(spine.switch, block, packets[at], there, inboxes)
            for leaf, inbox in enumerate(inboxes):
                down[leaf, spine.number] += len(inbox)
                for vertex, value in inbox.items():
                    arrived[_towards(parts.leaves[leaf], block, vertex)][vertex] = value
        for part in plan.workers:
            _receive(part, block, arrived[part.worker], total)
    return Replayed(total, up, down)


def _inboxes(part):
    return [{} for _ in range(len(part.below) + part.above)]


def _partial_sums(leaf, block, inbox):
    switch = leaf.switch
    for vertex, (value, count) in inbox.items():
        (at,) = np.flatnonzero((switch.result_block == block) & (switch.result_vertex == vertex))
        if not leaf.result_partial[at]:
            raise ReplayError(f"a complete sum of {vertex} goes up")
        yield Packet(int(leaf.result_partial[at]), leaf.number, count, value)


def _towards(leaf, block, vertex):
    at = np.flatnonzero((leaf.route_block == block) & (leaf.route_vertex == vertex))
    if len(at) != 1 or leaf.route_neighbour[at[0]] >= len(leaf.below):
        raise ReplayError(f"leaf {leaf.number} has no worker for the sum of {vertex}")
    return leaf.below[leaf.route_neighbour[at[0]]]
