"""The graph, plan, topology and right sums of a scenario."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from switchgnn.base.network import network_on
from switchgnn.controller import Network, leaf_spine_networks, leaf_spine_switch_plan, load_plan
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.install import DesiredStates
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.p4runtime.rows import Rows, decode_rows
from switchgnn.p4src import Program
from switchgnn.planner import Direction, Graph, Plan, build_plan, load_graph
from switchgnn.planner.base.lanes import banks_of_slot
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.partition.vertex_cut import ReplicaGraph
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.plan.manifest import REPLICAS
from switchgnn.planner.presets import EVEN, PlanRequest
from switchgnn.topologies import Target, Topology
from tests.simulation.scenario import Scenario


class KnownRows:
    """Decodes answers as the controller does, equal ones once: most answers are equal."""

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


def incidence(rows: ArrayLike, columns: ArrayLike, shape: tuple[int, int]) -> csr_matrix:
    """Return int64[shape], how often each pair of a row and a column occurs."""
    ones = np.ones(len(np.asarray(rows)), dtype=np.int64)
    indices = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    return csr_matrix((ones, indices), shape=shape)


class Oracle:
    """Sums over crossing edges, as integers of the scale of docs/protocol.md, without blocks.

    Of a vertex cut, those over all replicas of a vertex that has several.
    """

    def __init__(
        self, graph: Graph, assignment: NDArray[np.int32], directions: Sequence[Direction]
    ) -> None:
        self.vertices = len(assignment)
        shape = self.vertices, self.vertices
        self._assignment = assignment
        self._replicated: NDArray[np.int32] | None = None
        if isinstance(graph, ReplicaGraph):
            self._replicated = graph.vertex
            alike = graph.vertex[:, np.newaxis] == graph.vertex
            ends = np.nonzero(alike & (alike.sum(axis=1) > 1))
        else:
            source = np.repeat(np.arange(self.vertices), np.diff(graph.indptr))
            target = np.asarray(graph.indices)
            crossing = assignment[source] != assignment[target]
            ends = target[crossing], source[crossing]
        self._neighbours = {
            each: incidence(*(ends if each is Direction.FORWARD else ends[::-1]), shape)
            for each in directions
        }
        self._most = max(1, *(int(each.sum(axis=1).max()) for each in self._neighbours.values()))

    def part_of(self, worker: int) -> set[int]:
        """Return the vertices whose sums contain features of a worker, in any direction."""
        owned = (self._assignment == worker).astype(np.int64)
        counts = sum(neighbours @ owned for neighbours in self._neighbours.values())
        return set(np.flatnonzero(counts).tolist())

    def awaiting(self, vertex: int) -> set[int]:
        """Return the workers that await the sum of a vertex; none of a vertex that there is not."""
        here = np.arange(self.vertices) if self._replicated is None else self._replicated
        return set(self._assignment[here == vertex].tolist())

    def fixed(
        self, features: NDArray[np.float32], magnitude: float | None = None, bits: int = 32
    ) -> NDArray[np.int64]:
        """Return int64[V, F], features as integers of the scale of a magnitude; None: of theirs."""
        if magnitude is None:
            magnitude = float(np.abs(features).max(initial=np.float32(0)))
        steps = (2.0**31 - self._most) / self._most
        if bits < _WHOLE:
            steps = min(steps, 2.0 ** (bits - 1) - 1)
        scale = steps / magnitude if magnitude else 1.0
        # A Byzantine worker may report too small a magnitude, which makes numbers meaningless.
        with np.errstate(invalid="ignore", over="ignore"):
            return np.rint(features.astype(np.float64) * scale).astype(np.int64)

    def sums(self, fixed: NDArray[np.int64], direction: Direction) -> NDArray[np.int64]:
        """Return int64[V, F], the sums of all vertices; 0 without remote neighbours."""
        sums: NDArray[np.int64] = self._neighbours[direction] @ fixed
        return sums


_WHOLE = 32
# One in each bank.
_SURGE = np.float32(16.0)
# The shares of rows that are new in a round, and that are new or slightly changed; and the change.
_NEW, _NEAR, _STEP = 0.3, 0.7, np.float32(0.05)


@dataclass(frozen=True)
class SwitchShare:
    """The plan and network of one switch."""

    plan: SwitchPlan
    network: Network


class SwitchSums:
    """The sums that the switches make: one per block and destination."""

    def __init__(self, plan: Plan) -> None:
        self.index: dict[tuple[int, int], int] = {}  # of each (block, vertex)
        rows: list[NDArray[np.int64]] = []
        known = 0  # sums of all workers, of which several may await the same
        for part in plan.workers:
            sums = np.arange(len(part.receive_vertex)) + known
            blocks = np.repeat(np.arange(1, len(part.receive_indptr)), np.diff(part.receive_indptr))
            for block, vertex in zip(blocks.tolist(), part.receive_vertex.tolist(), strict=True):
                self.index[block, vertex] = known
                known += 1
            rows.append(np.repeat(sums, np.diff(part.neighbour_indptr)))
        columns = np.concatenate([part.neighbour_vertex for part in plan.workers])
        shape = known, len(plan.assignment)
        self._sources = incidence(np.concatenate(rows), columns, shape)

    def of(self, fixed: NDArray[np.int64]) -> NDArray[np.int64]:
        sums: NDArray[np.int64] = self._sources @ fixed
        return sums


@dataclass(frozen=True, eq=False)
class PlannedSubject:
    """What is exchanged, and where."""

    plan: Plan
    shares: tuple[SwitchShare, ...]  # of the switches, leaves first
    topology: Topology  # ports, addresses and cables
    oracle: Oracle  # the right sums of vertices
    awaited: SwitchSums  # the right sums of blocks
    directions: tuple[Direction, ...]
    desired: DesiredStates  # states of the switches
    answers: KnownRows  # of the switches, decoded

    def features(self, seed: list[int], width: int, surges: float) -> NDArray[np.float32]:
        """Draw the features of all vertices, float32[V, W], sometimes larger ones of one vertex."""
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
        s = scenario
        of_plan = s.graph, s.workers, s.slots, s.lanes, s.pools, s.send, s.directions, s.partition
        key = (*of_plan, s.rows, s.leaves, s.spines, s.port)
        if key not in self._known:
            if len(self._known) >= self._most:
                self._known.pop(next(iter(self._known)))
            self._known[key] = self._make(scenario)
        return self._known[key]

    def _make(self, scenario: Scenario) -> PlannedSubject:
        graph = load_graph(scenario.graph)
        graph = PlanRequest(partition=scenario.partition).cut(graph, scenario.workers, seed=0)
        is_cut = isinstance(graph, ReplicaGraph)
        common = ("workers", "slots", "lanes", "rows", "pools", "partition", "directions")
        banks = Fanout(Layout.from_text(self.program.p4info)).banks
        plan = build_plan(
            graph,
            program=self.program.digest,
            banks=max(banks, banks_of_slot(scenario.lanes)),
            blocks=EVEN if is_cut else "mlgp",
            send=REPLICAS if is_cut else scenario.send,
            **{name: getattr(scenario, name) for name in common},
        )
        both = scenario.directions != "forward"
        directions = (Direction.FORWARD, Direction.BACKWARD) if both else (Direction.FORWARD,)
        oracle = Oracle(graph, plan.assignment, directions)
        if scenario.leaves:
            shares, topology = _leaf_spine(scenario, plan)
        else:
            network = network_on(range(scenario.port, scenario.port + scenario.workers))
            shares = (SwitchShare(load_plan(plan), network),)
            topology = Topology(network.alone, Target.EMBEDDED, ("virtual",))
        return PlannedSubject(
            *(plan, shares, topology, oracle, SwitchSums(plan), directions),
            *(DesiredStates(self.program), KnownRows()),
        )


def _leaf_spine(scenario: Scenario, plan: Plan) -> tuple[tuple[SwitchShare, ...], Topology]:
    leaf_spine = even_leaf_spine(scenario.workers, scenario.leaves, scenario.spines)
    parts = split_for_leaf_spine(plan, leaf_spine)
    networks = leaf_spine_networks(leaf_spine.leaf_of_worker, leaf_spine.spines)
    plans = [leaf_spine_switch_plan(plan.manifest, part) for part in parts.switches]
    shares = tuple(map(SwitchShare, plans, networks.switches))
    addresses = tuple(f"virtual-{number}" for number in range(len(shares)))
    return shares, Topology(networks, Target.EMBEDDED, addresses)
