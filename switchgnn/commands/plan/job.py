# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn plan`: load and plan, then compare."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.machine import PeakMemory
from switchgnn.base.options import NETWORK, option
from switchgnn.commands.shared.options import mtu_option
from switchgnn.host.direct.framing import Framing
from switchgnn.host.wire.header import BARRIER_FRAME_BYTES, feature_frame_bytes
from switchgnn.p4src import load_program
from switchgnn.planner.auto import build_auto
from switchgnn.planner.blocks.mlgp import MIN_SLOTS
from switchgnn.planner.chosen import Asked, build_chosen, choose_asked
from switchgnn.planner.costs.bounds import PacketCounts, multicast_packets
from switchgnn.planner.costs.forecast import (
    HOST,
    HOST_PARTIAL,
    WAYS,
    Rows,
    StarForecast,
    choose_lanes,
    host_rows,
    share_served,
    verdict,
    way_of,
)
from switchgnn.planner.costs.host_seconds import packed_frames
from switchgnn.planner.costs.report import (
    DirectionReport,
    Frames,
    LeafSpineDirection,
    report_direction,
    report_leaf_spine_direction,
)
from switchgnn.planner.costs.seconds import NetworkModel
from switchgnn.planner.direction import Direction, find_directions
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.lanes import BANK_LANES, fragment_lanes
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.partition.metis import metis_time
from switchgnn.planner.partition.workers import partition_workers
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import PAPER, Choice, Situation, choose
from switchgnn.planner.strategies import BLOCK_STRATEGIES
from switchgnn.profiles import UNLIMITED, PlanMemory, SwitchProfile, plan_memory
from switchgnn.profiles.profile import most_attached, network_of

_DEFAULT = NetworkModel()
_MEGA, _GIGA, _MICRO, _MILLI = 1e6, 1e9, 1e-6, 1e-3


@dataclass(frozen=True)
class LinkOptions:
    """The links that exchanges are predicted on."""

    bandwidth: float | None = option(
        NETWORK,
        "MBIT/S",
        "Of each link, for the predicted time.",
        min=0.001,
        shown=f"of the switch's ports, or {_DEFAULT.bits_per_second / _MEGA:g}",
    )
    delay: float = option(
        NETWORK, "NUMBER", "Microseconds on each link.", default=_DEFAULT.delay / _MICRO, min=0.0
    )
    mtu: str = mtu_option(
        NETWORK, "The largest IP packet between hosts alone, into which they pack rows."
    )

    def network(self, profile: SwitchProfile | None, loop: float | None) -> NetworkModel:
        """Return the network to predict on; `loop`: passes per second of the switch, or None."""
        return network_of(
            UNLIMITED if profile is None else profile,
            bits_per_second=None if self.bandwidth is None else self.bandwidth * _MEGA,
            delay=self.delay * _MICRO,
            loop=loop,
            mtu=Framing.parse(self.mtu).packet_bytes,
        )


@dataclass(frozen=True)
class WayLoad:
    """Bytes of one exchange in each direction of the plan, headers included.

    Attributes:
        up, down: on the links of all workers.
        busiest: of the fullest link, one way.
    """

    up: int
    down: int
    busiest: int


@dataclass(frozen=True)
class Outlook:
    """The costs of exchanges with a plan, and between hosts alone.

    Attributes:
        plan: the way of the plan: `switch`, `mixed`, or of hosts alone if it leaves all to them.
        loads: bytes by way.
        seconds: predicted by way; empty over leaves and spines.
        chosen: the fastest way; None without a prediction.
        why: one sentence for the user.
    """

    plan: str
    network: NetworkModel
    loads: Mapping[str, WayLoad]
    seconds: Mapping[str, float]
    chosen: str | None
    why: str


def outlook_of(
    plan: Plan,
    boundary: BoundaryEdges,
    forecast: StarForecast,
    frames: Frames,
    known: Mapping[str, float] | None,
    *,
    star: bool,
) -> Outlook:
    """Compare a plan with hosts alone, which pack rows into frames.

    `known` are the seconds by way that were predicted when the plan was made. Exchanges over
    several switches are not predicted.
    """
    workers, directions = plan.manifest.workers, forecast.directions
    rows = {
        way: host_rows(boundary, workers, directions, partial=way == HOST_PARTIAL)
        for way in (HOST_PARTIAL, HOST)
    }
    left = host_rows(
        boundary, workers, directions, partial=True, left={it: plan.left(it) for it in directions}
    )
    own = way_of(plan, directions)
    loads = {way: _load(*_packed(each, forecast)) for way, each in rows.items()}
    if own not in loads:
        loads = {own: _of_plan(plan, left, forecast, frames), **loads}
    if not star:
        why = "Exchanges over leaves and spines are not predicted."
        return Outlook(own, forecast.network, loads, {}, None, why)
    seconds = dict(known or {})
    if known is None:
        seconds = {way: forecast.of_hosts(each) for way, each in rows.items()}
        if own not in seconds:
            seconds[own] = forecast.of_plan(plan, left)
    chosen = min((way for way in WAYS if way in seconds), key=seconds.__getitem__)
    kept = share_served(plan, boundary, directions)
    both = len(directions) > 1
    why = verdict(own, seconds, kept, forecast.network.mtu, both=both)
    ordered = {way: seconds[way] for way in WAYS if way in seconds}
    return Outlook(own, forecast.network, loads, ordered, chosen, why)


def _of_plan(plan: Plan, left: Rows, forecast: StarForecast, frames: Frames) -> WayLoad:
    up, down = _packed(left, forecast)
    for direction in forecast.directions:
        said = plan.manifest.direction(direction).prediction
        up = up + np.array(said.packets_up) * frames.feature_bytes
        down = down + np.array(said.packets_down) * frames.feature_bytes
    return _load(up, down)


def _packed(rows: Rows, forecast: StarForecast) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bytes of hosts' frames that each worker sends, and receives: int64[W] each."""
    sizes = sum(
        packed_frames(rows[direction], width, forecast.network.mtu)[1]
        for direction, widths in forecast.exchanges.items()
        for width in widths
    )
    sizes = np.asarray(sizes)
    return sizes.sum(axis=1), sizes.sum(axis=0)


def _load(up: NDArray[np.int64], down: NDArray[np.int64]) -> WayLoad:
    return WayLoad(int(up.sum()), int(down.sum()), int(max(up.max(), down.max())))


# The comparison with the paper's plan partitions the boundary graph again, level by level.
_COMPARED_EDGES = 20_000_000

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PlanOptions:
    """What to plan.

    Attributes:
        graph, ignore_weights: as `load_graph` takes them.
        slots: aggregators that a block may use; None: all of the switch.
        features: width F; None: the graph's own, or as many as a fragment holds.
        directions: a key of DIRECTIONS.
        link_rate: packets per second on each worker's link, or None.
        recirculation_rate: passes per second of the switch, or None.
        leaf_spine: None for a star.
        table_memory: the most bytes that the tables of a switch may take, or None.
        switch: its limits replace those that are None; None: a switch that runs the program.
    """

    graph: str
    workers: int
    slots: int | None
    features: int | None
    asked: Asked
    directions: str
    seed: int
    link_rate: float | None
    recirculation_rate: float | None
    leaf_spine: LeafSpine | None = None
    table_memory: int | None = None
    switch: SwitchProfile | None = None
    links: LinkOptions = field(default_factory=LinkOptions)
    ignore_weights: bool = False


@dataclass(frozen=True, eq=False)
class MadePlan:
    """A plan, and the cost of making it.

    Attributes:
        situation: the facts that the choice depended on, those of the switch included.
        parts: those of leaves and spines; None in a star.
        memory: of the switches.
        forecast: predicts one exchange in each direction.
        predicted: the predicted seconds by way that decided about the plan, or None.
        seconds: of planning, without loading the graph.
        metis_seconds: of those, inside METIS.
        peak_memory_bytes: of the process while planning, graph included.
        memory_before_bytes: of the process before planning.
    """

    options: PlanOptions
    situation: Situation
    choice: Choice
    graph: Graph
    plan: Plan
    parts: LeafSpineParts | None
    memory: PlanMemory
    forecast: StarForecast
    predicted: Mapping[str, float] | None
    seconds: float
    metis_seconds: float
    peak_memory_bytes: int
    memory_before_bytes: int


@dataclass(frozen=True, eq=False)
class PlanReport:
    """A plan in numbers.

    Attributes:
        directions: the numbers, by direction.
        features: width F of the bytes.
        leaf_spine: the links between leaves and spines, by direction; None in a star.
    """

    made: MadePlan
    directions: dict[str, DirectionReport]
    features: int
    frames: Frames
    outlook: Outlook
    leaf_spine: dict[str, LeafSpineDirection] | None

    @property
    def loop_seconds(self) -> float | None:
        """The least time of the loop for one exchange in each direction; None: no rate."""
        rate = self.made.situation.recirculation_rate
        return None if rate is None else self.made.memory.loop_passes * self.frames.fragments / rate


def make_plan(options: PlanOptions, tell: Progress) -> MadePlan:
    """Load the graph and plan; `tell` is called at the start of each step."""
    switch = options.switch
    if switch is not None:
        switch.check_attached(most_attached(options.leaf_spine, options.workers))
    tell(f"load {options.graph}")
    graph = load_graph(options.graph, ignore_weights=options.ignore_weights)
    program = load_program()
    allowed = options.table_memory
    if allowed is None and switch is not None:
        allowed = switch.table_bytes

    @lru_cache(maxsize=1)
    def measured(plan: Plan) -> tuple[LeafSpineParts | None, PlanMemory]:
        parts = None
        if options.leaf_spine is not None:
            tell("split the plan for leaves and spines")
            parts = split_for_leaf_spine(plan, options.leaf_spine, banks=situation.banks)
        return parts, plan_memory(plan, parts, program, allowed, switch)

    predicted = None
    memory, start = PeakMemory(), time.perf_counter()
    with metis_time() as metis:
        situation, forecast, assignment = _situation(options, program.slots, graph, tell)
        choice = choose_asked(options.asked, graph, situation)
        asked: dict[str, Any] = {
            "program": program.digest,
            "seed": options.seed,
            "directions": options.directions,
            "assignment": assignment,
            "fits": lambda plan: not measured(plan)[1].refusals,
            "progress": tell,
        }
        if choice.leaves:
            made = build_auto(graph, choice, situation, forecast, **asked)
            plan, predicted = made.plan, made.seconds
        else:
            plan = build_chosen(graph, choice, situation, **asked)
    seconds, peak = time.perf_counter() - start, memory.peak()
    parts, plan_takes = measured(plan)
    return MadePlan(
        options=options,
        situation=situation,
        choice=choice,
        graph=graph,
        plan=plan,
        parts=parts,
        memory=plan_takes,
        forecast=forecast,
        predicted=predicted,
        seconds=seconds,
        metis_seconds=metis.seconds,
        peak_memory_bytes=peak,
        memory_before_bytes=memory.before,
    )


def _situation(
    options: PlanOptions, slots: int, graph: Graph, tell: Progress
) -> tuple[Situation, StarForecast, NDArray[np.integer] | None]:
    """Return the facts asked for or of the switch, a forecast, and the assignment if known."""
    switch = options.switch or UNLIMITED
    rate = options.recirculation_rate
    situation = Situation(
        workers=options.workers,
        slots=options.slots or switch.slots or slots,
        link_rate=options.link_rate,
        recirculation_rate=switch.passes_per_second if rate is None else rate,
        leaf_spine=options.leaf_spine,
        banks=switch.banks,
        within=options.switch is not None,
    )
    network = options.links.network(options.switch, situation.recirculation_rate)
    exchange = {_width(options, graph): 1.0}
    forecast = StarForecast(network, dict.fromkeys(find_directions(options.directions), exchange))
    tell("partition the vertices over the workers")
    situation, assignment = choose_lanes(
        options.asked, graph, situation, exchange, options.seed, network=network
    )
    if options.link_rate is None:
        size = feature_frame_bytes(situation.lanes)
        situation = replace(situation, link_rate=switch.frames_per_second(size))
    return situation, forecast, assignment


def _width(options: PlanOptions, graph: Graph) -> int:
    """Return the width of a feature: as asked for, or the graph's."""
    own = BANK_LANES if graph.features is None else graph.features.shape[1]
    return options.features or own


def report_plan(made: MadePlan, tell: Progress) -> PlanReport:
    """Count the costs of the plan and of other ways."""
    features = _width(made.options, made.graph)
    widths = fragment_lanes(features, made.plan.manifest.lanes)
    frames = Frames(feature_frame_bytes(widths[0]), len(widths), feature_frame_bytes(widths[-1]))
    boundary = boundary_edges(made.graph, made.plan.assignment)
    directions = _report(made.graph, made.plan, boundary, frames, tell)
    leaf_spine = None
    if made.parts is not None:
        leaf_spine = _leaf_spine(made.plan, boundary, made.parts, frames)
    tell("predict the seconds of exchanges")
    outlook = outlook_of(
        made.plan, boundary, made.forecast, frames, made.predicted, star=made.parts is None
    )
    return PlanReport(made, directions, features, frames, outlook, leaf_spine)


def _leaf_spine(
    plan: Plan, boundary: BoundaryEdges, parts: LeafSpineParts, frames: Frames
) -> dict[str, LeafSpineDirection]:
    """Count the packets between leaves and spines, by direction."""
    edges = {Direction.FORWARD: boundary, Direction.BACKWARD: boundary.transposed()}
    return {
        direction.value: report_leaf_spine_direction(
            parts, plan.manifest.direction(direction), edges[direction], frames, BARRIER_FRAME_BYTES
        )
        for direction in map(Direction, plan.manifest.directions)
    }


def _report(
    graph: Graph, plan: Plan, boundary: BoundaryEdges, frames: Frames, tell: Progress
) -> dict[str, DirectionReport]:
    """Return the numbers of each direction; directions with the same edges share them."""
    shared: dict[tuple[int, int], DirectionReport] = {}
    reports = {}
    for direction in map(Direction, plan.manifest.directions):
        record = plan.manifest.direction(direction)
        key = record.first_block, record.last_block
        if key not in shared:
            edges = boundary if direction is Direction.FORWARD else boundary.transposed()
            tell(f"compare the {direction.value} sums with other ways")
            paper = {PAPER: _paper_packets(graph, plan, edges, direction)}
            shared[key] = report_direction(plan, direction, edges, frames, paper)
        reports[direction.value] = shared[key]
    return reports


def _paper_packets(
    graph: Graph, plan: Plan, boundary: BoundaryEdges, direction: Direction
) -> PacketCounts | None:
    """Return the packets of the paper's plan: METIS, MLGP, all sources multicast."""
    manifest = plan.manifest
    if len(boundary) > _COMPARED_EDGES or manifest.room < MIN_SLOTS:
        return None
    paper = choose(PAPER, graph, Situation(manifest.workers, manifest.slots, lanes=manifest.lanes))
    if manifest.partition.method != paper.partition:
        owner: NDArray[np.int32] = partition_workers(
            graph, manifest.workers, manifest.partition.seed
        )
        boundary = boundary_edges(graph, owner)
        if direction is Direction.BACKWARD:
            boundary = boundary.transposed()
    elif (manifest.strategy.blocks, manifest.strategy.send) == (paper.blocks, paper.send):
        said = manifest.direction(direction).prediction
        return PacketCounts(np.array(said.packets_up), np.array(said.packets_down))
    make_blocks = BLOCK_STRATEGIES[paper.blocks]
    try:
        block = make_blocks(boundary, manifest.room, manifest.strategy.seed)
    except PlannerError:  # too many blocks: the paper has no plan here
        return None
    return multicast_packets(boundary, block, manifest.workers)
