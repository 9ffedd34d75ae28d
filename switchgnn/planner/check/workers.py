# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Do the workers' parts of a plan agree with the switch's? A step of the checker."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.check.files import Arrays, PlanCheckError, RawPlan, require
from switchgnn.planner.check.switch import Deliveries

_PARTIAL = 2**31


@dataclass(frozen=True)
class Packets:
    """Which vertices the packets of the switch add up.

    Attributes:
        indptr: int64[P + 1], rows of each packet, in the order of Deliveries.
        vertex: int64[...], the vertices.
    """

    indptr: NDArray[np.int64]
    vertex: NDArray[np.int64]


@dataclass(frozen=True)
class Neighbours:
    """The edges that the workers believe in: one row per contribution, C rows.

    Attributes:
        block: int64[C].
        source: int64[C].
        destination: int64[C].
    """

    block: NDArray[np.int64]
    source: NDArray[np.int64]
    destination: NDArray[np.int64]


def check_workers(plan: RawPlan, deliveries: Deliveries) -> tuple[Packets, Neighbours]:
    """Check what every worker owns, sends and receives.

    Returns:
        What their packets carry, and the edges in their lists of neighbours.

    Raises:
        PlanCheckError: the first thing that is wrong.
    """
    for worker, part in enumerate(plan.workers):
        _check_shapes(worker, part, plan.manifest["blocks"])
        own = np.flatnonzero(plan.assignment == worker)
        require(
            np.array_equal(part["vertices"], own),
            f"worker {worker} does not hold exactly the vertices that are assigned to it",
        )
        _check_receives(plan, worker, part)
    return _check_sends(plan, deliveries), _neighbours(plan)


def _check_shapes(worker: int, part: Arrays, blocks: int) -> None:
    sends, receives = len(part["send_source"]), len(part["receive_vertex"])
    for name, rows, total in (
        ("send_indptr", blocks, sends),
        ("receive_indptr", blocks, receives),
        ("send_row_indptr", sends, len(part["send_row"])),
        ("neighbour_indptr", receives, len(part["neighbour_vertex"])),
    ):
        array = part[name]
        right = len(array) == rows + 1 and array[0] == 0 and array[-1] == total
        require(
            right and bool(np.all(np.diff(array) >= 0)),
            f"worker {worker}: {name} does not rise from 0 to {total} in {rows} steps",
        )
    for names, rows in (
        (("send_destination",) if "send_destination" in part else (), sends),
        (("receive_row", "receive_count"), receives),
        (("neighbour_worker",), len(part["neighbour_vertex"])),
    ):
        for name in names:
            require(len(part[name]) == rows, f"worker {worker}: {name} has a wrong length")
    for name in ("send_row", "receive_row"):
        inside = (part[name] >= 0) & (part[name] < len(part["vertices"]))
        require(bool(np.all(inside)), f"worker {worker}: {name} is beyond its vertices")


def rows_left(plan: RawPlan, name: str) -> NDArray[np.bool_]:
    """Return bool[V], the destinations of a direction that are left to the hosts.

    Raises:
        PlanCheckError: a worker leaves what it does not hold, or a row twice.
    """
    left = np.zeros(len(plan.assignment), dtype=np.bool_)
    for worker, part in enumerate(plan.workers):
        rows = part.get(f"left_{name}", np.zeros(0, dtype=np.int64))
        inside = bool(np.all((rows >= 0) & (rows < len(part["vertices"]))))
        require(inside, f"worker {worker}: left_{name} is beyond its vertices")
        ascending = bool(np.all(np.diff(rows) > 0))
        require(ascending, f"worker {worker}: left_{name} is not ascending")
        left[part["vertices"][rows]] = True
    return left


def _check_receives(plan: RawPlan, worker: int, part: Arrays) -> None:
    switch = plan.switch
    vertex = part["receive_vertex"].astype(np.int64)
    named = np.array_equal(part["vertices"][part["receive_row"]], vertex)
    require(named, f"worker {worker}: receive_row and receive_vertex differ")
    key = (_blocks(part["receive_indptr"]) << 32) | vertex
    require(bool(np.all(np.diff(key) > 0)), f"worker {worker}: receive_vertex is not ascending")
    mine = switch["result_worker"] == worker
    sums = (switch["result_block"][mine].astype(np.int64) << 32) | switch["result_vertex"][mine]
    order = np.argsort(sums)
    require(
        np.array_equal(sums[order], key),
        f"worker {worker} expects other sums than the switch sends it",
    )
    counts = np.array_equal(switch["result_expected"][mine][order], part["receive_count"])
    require(counts, f"worker {worker} expects another Count of a sum than the switch")
    listed = np.array_equal(np.diff(part["neighbour_indptr"]), part["receive_count"])
    require(listed, f"worker {worker}: a list of neighbours is not as long as its Count")


def _check_sends(plan: RawPlan, deliveries: Deliveries) -> Packets:
    """Return the packets of all workers, in the order of the switch's entries."""
    keys, rows, vertices, addressed = [], [], [], []
    source_ids = plan.switch["source_vertex"].astype(np.int64)
    source_worker = plan.switch["source_worker"]
    for worker, part in enumerate(plan.workers):
        ids = part["send_source"].astype(np.int64)
        carried = np.diff(part["send_row_indptr"])
        carrying = part["vertices"][part["send_row"]]
        _check_carried(worker, ids, carried, carrying, part["send_row_indptr"])
        place = np.searchsorted(source_ids, ids)
        known = place < len(source_ids)
        known[known] = source_ids[place[known]] == ids[known]
        require(bool(np.all(known)), f"worker {worker} sends what the switch does not know")
        require(
            bool(np.all(source_worker[place] == worker)),
            f"worker {worker} sends a packet that the switch takes from another worker only",
        )
        keys.append((_blocks(part["send_indptr"]) << 32) | ids)
        rows.append(carried)
        vertices.append(carrying)
        if "send_destination" in part:
            addressed.append(part["send_destination"])
    key, carried = np.concatenate(keys), np.concatenate(rows)
    carrying = np.concatenate(vertices)
    order = np.argsort(key, kind="stable")
    expected = (deliveries.packet_block << 32) | deliveries.packet_id
    require(
        np.array_equal(key[order], expected),
        "the packets of the workers are not, once each, those that the switch has entries for",
    )
    wrong = np.flatnonzero(carried[order] != deliveries.packet_count)
    if len(wrong):
        at = wrong[0]
        raise PlanCheckError(
            f"packet {deliveries.packet_id[at]} of block {deliveries.packet_block[at]} adds up "
            f"{carried[order][at]} vertices, but the switch takes it with Count "
            f"{deliveries.packet_count[at]}",
        )
    if addressed:
        _check_addressed(plan, deliveries, np.concatenate(addressed)[order])
    starts = np.cumsum(carried) - carried
    indptr = np.concatenate([[0], np.cumsum(carried[order])])
    within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], carried[order])
    return Packets(indptr, carrying[np.repeat(starts[order], carried[order]) + within])


def _check_addressed(plan: RawPlan, deliveries: Deliveries, addressed: NDArray[np.integer]) -> None:
    """Check that partial sums name their only destination, and other packets none."""
    partial = deliveries.packet_id >= _PARTIAL
    require(not np.any(addressed[~partial]), "a packet of one vertex names a destination")
    to = partial[deliveries.packet]
    packet, vertex = deliveries.packet[to], plan.switch["result_vertex"][deliveries.result[to]]
    wrong = np.flatnonzero(addressed[packet] != vertex)
    if len(wrong):
        at = packet[wrong[0]]
        raise PlanCheckError(
            f"partial sum {deliveries.packet_id[at]} of block {deliveries.packet_block[at]} names "
            f"vertex {addressed[at]}, but the switch adds it for {vertex[wrong[0]]}"
        )


def _check_carried(
    worker: int,
    ids: NDArray[np.int64],
    carried: NDArray[np.int64],
    carrying: NDArray[np.int64],
    indptr: NDArray[np.int64],
) -> None:
    require(bool(np.all(carried > 0)), f"worker {worker} sends a packet that carries nothing")
    plain = ids < _PARTIAL
    require(bool(np.all(carried[plain] == 1)), f"worker {worker} adds to a packet of one vertex")
    named = np.array_equal(carrying[indptr[:-1][plain]], ids[plain])
    require(named, f"worker {worker}: send_row and send_source differ")
    pairs = np.sort((np.repeat(np.arange(len(ids)), carried) << 32) | carrying)
    require(bool(np.all(np.diff(pairs) != 0)), f"worker {worker} adds a row twice to a packet")


def _neighbours(plan: RawPlan) -> Neighbours:
    blocks, sources, destinations = [], [], []
    for worker, part in enumerate(plan.workers):
        source = part["neighbour_vertex"].astype(np.int64)
        counts = np.diff(part["neighbour_indptr"])
        require(bool(np.all(source < len(plan.assignment))), f"worker {worker}: no such neighbour")
        require(
            np.array_equal(plan.assignment[source], part["neighbour_worker"]),
            f"worker {worker} believes that a neighbour belongs to another worker than it does",
        )
        ascending = (np.repeat(np.arange(len(counts)), counts) << 32) | source
        require(
            bool(np.all(np.diff(ascending) > 0)), f"worker {worker}: neighbours are not ascending"
        )
        blocks.append(np.repeat(_blocks(part["receive_indptr"]), counts))
        destinations.append(np.repeat(part["receive_vertex"].astype(np.int64), counts))
        sources.append(source)
    return Neighbours(np.concatenate(blocks), np.concatenate(sources), np.concatenate(destinations))


def _blocks(indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the block of each row."""
    return np.repeat(np.arange(1, len(indptr), dtype=np.int64), np.diff(indptr))
