# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What workers with caches send of their rows, and its sums, from plan, features and scales."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.plan import Plan, WorkerPart
from tests.simulation.checks.features import ExpectedScales, Scaled
from tests.simulation.parts.worker import ExchangeJob
from tests.simulation.scene import Scene

# Sources from here on are partial sums.
_PARTIAL = 1 << 31
_ALL = -1


class PlannedFrames:
    """The frames of all workers and blocks, and the sums that each is part of.

    Attributes:
        block: int64[K].
        place: frames by block, vertex and destination; a frame for all has destination -1.
        first: the first vertex of each frame, int64[K].
        worker: that sends each frame, int64[K].
    """

    def __init__(self, plan: Plan) -> None:
        self.place: dict[tuple[int, int, int], int] = {}
        blocks: list[int] = []
        senders: list[int] = []
        vertices: list[NDArray[np.int64]] = []
        for worker, part in enumerate(plan.workers):
            for block, destination, rows in _frames(part):
                here = len(blocks)
                self.place |= {(block, vertex, destination): here for vertex in rows.tolist()}
                blocks.append(block)
                senders.append(worker)
                vertices.append(rows)
        self.block = np.array(blocks, dtype=np.int64)
        self.worker = np.array(senders, dtype=np.int64)
        self._owned = [part.vertices for part in plan.workers]
        self.first = np.array([rows[0] for rows in vertices], dtype=np.int64)
        self._vertices = np.concatenate(vertices) if vertices else self.block
        self._begins = np.cumsum([0, *map(len, vertices)])[:-1]
        sums = [each for part in plan.workers for each in self._sums(part)]
        self._vertex = np.array([vertex for vertex, _ in sums], dtype=np.int64)
        self._block_of_sum = np.array([self.block[parts[0]] for _, parts in sums], dtype=np.int64)
        self._parts = np.array([each for _, parts in sums for each in parts], dtype=np.int64)
        self._part_begins = np.cumsum([0, *(len(parts) for _, parts in sums)])[:-1]

    def rows_of(self, fixed: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[K, F], the row or partial sum of each frame; `fixed`: int64[V, F]."""
        if not len(self.block):
            return fixed[:0]
        rows: NDArray[np.int64] = np.add.reduceat(fixed[self._vertices], self._begins, axis=0)
        return rows

    def usual_sizes(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return float64[K], the mean size of the rows of each sender; `sizes`: int64[V]."""
        usual = np.array([sizes[owned].mean() if len(owned) else 0.0 for owned in self._owned])
        return usual[self.worker]

    def sums_of(self, sent: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[Q, F], the sums of all blocks, as in `SwitchSums`; `sent`: int64[K, F]."""
        if not len(self._vertex):
            return sent[:0]
        sums: NDArray[np.int64] = np.add.reduceat(sent[self._parts], self._part_begins, axis=0)
        return sums

    def totals(self, sent: NDArray[np.int64], blocks: range, vertices: int) -> NDArray[np.int64]:
        """Return int64[V, F], the sums of all vertices over some blocks."""
        total = np.zeros((vertices, sent.shape[1]), dtype=np.int64)
        here = np.isin(self._block_of_sum, blocks)
        np.add.at(total, self._vertex[here], self.sums_of(sent)[here])
        return total

    def _sums(self, part: WorkerPart) -> Iterable[tuple[int, list[int]]]:
        """Yield the vertex and the frames of each sum of a worker."""
        blocks = np.repeat(np.arange(1, len(part.receive_indptr)), np.diff(part.receive_indptr))
        for row, (block, vertex) in enumerate(
            zip(blocks.tolist(), part.receive_vertex.tolist(), strict=True)
        ):
            of_row = slice(*part.neighbour_indptr[row : row + 2])
            parts = {
                self.of(block, each, vertex) for each in part.neighbour_vertex[of_row].tolist()
            }
            yield vertex, sorted(each for each in parts if each is not None)

    def of(self, block: int, vertex: int, destination: int) -> int | None:
        """Return the frame that brings a vertex to a destination; None if there is none."""
        alone = self.place.get((block, vertex, _ALL))
        return self.place.get((block, vertex, destination), alone)


def _frames(part: WorkerPart) -> Iterable[tuple[int, int, NDArray[np.int64]]]:
    """Yield the block, the destination and the vertices of each frame of a worker."""
    for block in range(1, len(part.send_indptr)):
        for frame in range(*part.send_indptr[block - 1 : block + 1].tolist()):
            rows = part.send_row[slice(*part.send_row_indptr[frame : frame + 2])]
            partial = int(part.send_source[frame]) >= _PARTIAL
            destination = int(part.send_destination[frame]) if partial else _ALL
            yield block, destination, part.vertices[rows]


@dataclass
class SentRows:
    """The rounds of a session, one after the other.

    Attributes:
        changes: int64[K, F], what each frame carries, by round from 1.
        totals: int64[V, F], the sums of what was sent, by exchange from 0.
    """

    frames: PlannedFrames
    changes: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    totals: dict[int, NDArray[np.int64]] = field(default_factory=dict)


def sent_in_session(scene: Scene, scales: ExpectedScales) -> SentRows | None:
    """Return what is sent in the session; None if there are no caches."""
    job = scene.job
    if job is None or not job.compression.cache:
        return None
    return sent_rows(scene, job, scales.rounds)


def sent_rows(scene: Scene, job: ExchangeJob, rounds: Iterable[Scaled]) -> SentRows:
    """Return what is sent in a session, by the rule of docs/protocol.md."""
    subject, scenario = scene.subject, scene.scenario
    result = SentRows(PlannedFrames(subject.plan))
    held: dict[Direction, NDArray[np.int64]] = {}
    for place, scaled in enumerate(rounds, 1):
        features, direction = job.rounds[scaled.exchange]
        fixed = subject.oracle.fixed(features, scaled.magnitude, scenario.bits)
        rows = result.frames.rows_of(fixed)
        before = np.zeros_like(rows) if scaled.full else held[direction]
        sizes = np.maximum(_largest(rows), result.frames.usual_sizes(_largest(fixed)))
        epsilon = 0.0 if scaled.full else scenario.epsilon
        moved = _largest(rows - before) > epsilon * sizes
        now = np.where(moved[:, np.newaxis], rows, before)
        result.changes[place] = now - before
        if not scaled.void:
            held[direction] = now
            blocks = subject.plan.manifest.direction(direction).block_numbers
            result.totals[scaled.exchange] = result.frames.totals(now, blocks, len(features))
    return result


def _largest(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    largest: NDArray[np.int64] = np.abs(rows).max(axis=1, initial=0)
    return largest
