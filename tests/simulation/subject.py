# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The graph, plan, site and right sums of a scenario."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from switchgnn.controller import (
    Network,
    leaf_spine_networks,
    leaf_spine_switch_plan,
    load_plan,
    star_network,
)
from switchgnn.controller.install import DesiredStates
from switchgnn.controller.p4runtime.layout import Table
from switchgnn.controller.p4runtime.rows import Rows
from switchgnn.controller.p4runtime.wire import decode_rows
from switchgnn.controller.plan import SwitchPlan
from switchgnn.p4src import Program
from switchgnn.planner.build import build_plan
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.plan.plan import Plan
from switchgnn.topologies import LeafSpineSite, Site, Star, Target
from tests.simulation.scenario import Scenario


class KnownRows:
    """Decodes answers as the controller does, equal ones once.

    The controller reads back all that it has written, and its watch reads it again, so most answers
    of runs with one plan are equal.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[int, bytes], Rows] = {}

    def decode(self, table: Table, responses: Iterable[bytes]) -> Rows:
        """Return the entries in serialized ReadResponses to a read of one table."""
        answer = b"".join(responses)
        rows = self._rows.get((table.id, answer))
        # Another program may have another table of that number.
        if rows is None or rows.table != table:
            rows = self._rows[table.id, answer] = decode_rows(table, [answer])
        return rows


class Oracle:
    """Sums over neighbours on other workers, with NumPy, as integers of a fixed scale.

    It is independent of blocks and packets: it uses crossing edges, and the scale of
    docs/protocol.md.

    Args:
        graph: the graph.
        assignment: int32[V], the worker of each vertex.
        directions: those that are exchanged.

    Attributes:
        vertices: V.
    """

    def __init__(
        self, graph: Graph, assignment: NDArray[np.int32], directions: Sequence[Direction]
    ) -> None:
        self.vertices = len(assignment)
        source = np.repeat(np.arange(self.vertices), np.diff(graph.indptr))
        target = np.asarray(graph.indices)
        crossing = assignment[source] != assignment[target]
        ends = {
            Direction.FORWARD: (source[crossing], target[crossing]),
            Direction.BACKWARD: (target[crossing], source[crossing]),
        }
        self._assignment = assignment
        self._ends = {}
        for direction in directions:
            giver, taker = ends[direction]
            order = np.argsort(taker, kind="stable")
            takers, begins = np.unique(taker[order], return_index=True)
            self._ends[direction] = (giver[order], takers, begins)
        self._most = max(
            (int(np.diff(np.append(b, len(g))).max(initial=0)) for g, _, b in self._ends.values()),
            default=0,
        )

    def part_of(self, worker: int) -> set[int]:
        """Return the vertices whose sums contain features of a worker, in any direction."""
        vertices: set[int] = set()
        for givers, takers, begins in self._ends.values():
            if len(takers):
                parts = np.logical_or.reduceat(self._assignment[givers] == worker, begins)
                vertices.update(takers[parts].tolist())
        return vertices

    def fixed(
        self, features: NDArray[np.float32], magnitude: float | None = None, bits: int = 32
    ) -> NDArray[np.int64]:
        """Return features as integers of the scale of their exchange.

        Args:
            features: float32[V, F].
            magnitude: the largest one that workers have reported; None: that of the features.
            bits: of a number of that magnitude.

        Returns:
            int64[V, F].
        """
        if magnitude is None:
            magnitude = float(np.abs(features).max(initial=np.float32(0)))
        most = max(1, self._most)
        steps = (2.0**31 - most) / most
        if bits < _WHOLE:
            steps = min(steps, 2.0 ** (bits - 1) - 1)
        scale = steps / magnitude if magnitude else 1.0
        # A Byzantine worker may report too small a magnitude, which makes numbers meaningless.
        with np.errstate(invalid="ignore", over="ignore"):
            return np.rint(features.astype(np.float64) * scale).astype(np.int64)

    def sums(self, fixed: NDArray[np.int64], direction: Direction) -> NDArray[np.int64]:
        """Return int64[V, F], the sums of all vertices; 0 without remote neighbours."""
        giver, takers, begins = self._ends[direction]
        sums = np.zeros_like(fixed)
        if len(takers):
            sums[takers] = np.add.reduceat(fixed[giver], begins, axis=0)
        return sums


_WHOLE = 32
# One in each bank.
_MORE_SLOTS = 8
_SURGE = np.float32(16.0)
# The shares of rows that are new in a round, and that are new or slightly changed; and the change.
_NEW, _NEAR, _STEP = 0.3, 0.7, np.float32(0.05)


@dataclass(frozen=True)
class SwitchShare:
    """The plan and network of one switch."""

    plan: SwitchPlan
    network: Network


class SwitchSums:
    """The sums that the switches make: one per block and destination.

    Attributes:
        place: of each (block, vertex) among the sums.
    """

    def __init__(self, plan: Plan) -> None:
        self.place: dict[tuple[int, int], int] = {}
        neighbours, begins, total = [], [], 0
        for part in plan.workers:
            blocks = np.repeat(np.arange(1, len(part.receive_indptr)), np.diff(part.receive_indptr))
            for block, vertex in zip(blocks.tolist(), part.receive_vertex.tolist(), strict=True):
                self.place[block, vertex] = len(self.place)
            neighbours.append(part.neighbour_vertex.astype(np.int64))
            begins.append(part.neighbour_indptr[:-1] + total)
            total += len(part.neighbour_vertex)
        self._neighbours = np.concatenate(neighbours)
        self._begins = np.concatenate(begins)

    def of(self, fixed: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[Q, F], all sums of one round."""
        if not len(self._begins):
            return fixed[:0]
        sums: NDArray[np.int64] = np.add.reduceat(fixed[self._neighbours], self._begins, axis=0)
        return sums


@dataclass(frozen=True, eq=False)
class PlannedSubject:
    """What is exchanged, and where.

    Attributes:
        shares: of the switches, leaves first.
        site: ports, addresses and cables.
        oracle: the right sums of vertices.
        awaited: the right sums of blocks.
        desired: states of the switches.
        answers: of the switches, decoded.
    """

    plan: Plan
    shares: tuple[SwitchShare, ...]
    site: Site
    oracle: Oracle
    awaited: SwitchSums
    directions: tuple[Direction, ...]
    desired: DesiredStates
    answers: KnownRows

    def features(self, seed: list[int], width: int, surges: float) -> NDArray[np.float32]:
        """Draw the features of all vertices, sometimes larger ones of one vertex.

        Returns:
            float32[V, width].
        """
        generator = np.random.default_rng(seed)
        drawn = generator.standard_normal((self.oracle.vertices, width), dtype=np.float32)
        if generator.random() < surges:
            drawn[generator.integers(self.oracle.vertices)] *= _SURGE
        return drawn

    def partly_new(
        self, seed: list[int], before: NDArray[np.float32], drawn: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return features of which most rows are those before, some of them slightly changed."""
        kinds = np.random.default_rng(seed).random((self.oracle.vertices, 1))
        near = np.where(kinds < _NEAR, before + _STEP * drawn, before)
        return np.where(kinds < _NEW, drawn, near)


class Subjects:
    """Makes subjects, and caches some, as scenarios often share a plan."""

    def __init__(self, program: Program, most: int = 256) -> None:
        self.program = program
        self._most = most
        self._known: dict[tuple[object, ...], PlannedSubject] = {}

    def of(self, scenario: Scenario) -> PlannedSubject:
        """Return the subject of a scenario."""
        s = scenario
        key = (s.graph, s.workers, s.leaves, s.spines, s.slots, s.lanes, s.send, s.directions)
        if key not in self._known:
            if len(self._known) >= self._most:
                self._known.pop(next(iter(self._known)))
            self._known[key] = self._make(scenario)
        return self._known[key]

    def other_than(self, scenario: Scenario) -> PlannedSubject:
        """Return the subject of the same workers on another graph, in other blocks."""
        shape, _, number = scenario.graph.rpartition(":")
        graph = f"{shape}:{int(number) + 1}" if number.isdigit() else scenario.graph
        return self.of(replace(scenario, graph=graph, slots=scenario.slots + _MORE_SLOTS))

    def _make(self, scenario: Scenario) -> PlannedSubject:
        graph = load_graph(scenario.graph)
        plan = build_plan(
            graph,
            workers=scenario.workers,
            slots=scenario.slots,
            lanes=scenario.lanes,
            program=self.program.digest,
            send=scenario.send,
            directions=scenario.directions,
        )
        both = scenario.directions != "forward"
        directions = (Direction.FORWARD, Direction.BACKWARD) if both else (Direction.FORWARD,)
        oracle = Oracle(graph, plan.assignment, directions)
        if scenario.leaves:
            shares, site = _leaf_spine(scenario, plan)
        else:
            network = star_network(scenario.workers)
            switch_plan = load_plan((plan.manifest, plan.switch))
            shares = (SwitchShare(switch_plan, network),)
            site = Star(network, Target.EMBEDDED, "virtual")
        return PlannedSubject(
            plan,
            shares,
            site,
            oracle,
            SwitchSums(plan),
            directions,
            DesiredStates(self.program),
            KnownRows(),
        )


def _leaf_spine(scenario: Scenario, plan: Plan) -> tuple[tuple[SwitchShare, ...], Site]:
    leaf_spine = even_leaf_spine(scenario.workers, scenario.leaves, scenario.spines)
    parts = split_for_leaf_spine(plan, leaf_spine)
    networks = leaf_spine_networks(leaf_spine.leaf_of_worker, leaf_spine.spines)
    plans = [leaf_spine_switch_plan(plan.manifest, part) for part in parts.switches]
    shares = tuple(map(SwitchShare, plans, networks.switches))
    addresses = tuple(f"virtual-{number}" for number in range(len(shares)))
    return shares, LeafSpineSite(networks, Target.EMBEDDED, addresses)
