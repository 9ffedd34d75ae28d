# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn plan`: load and plan, then compare."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from switchgnn.base.machine import PeakMemory
from switchgnn.base.options import NETWORK
from switchgnn.commands.shared.options import known_mtu
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.host.wire.header import (
    BARRIER_FRAME_BYTES,
    feature_frame_bytes,
)
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
from switchgnn.planner.costs.seconds import Network
from switchgnn.planner.direction import Direction, find_directions
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.lanes import BANK_LANES, fragment_lanes
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.partition.metis import metis_time
from switchgnn.planner.partition.workers import partition_workers
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import PAPER, Choice, Situation, choose
from switchgnn.planner.strategies import BLOCK_STRATEGIES
from switchgnn.profiles import UNLIMITED, PlanMemory, SwitchProfile, plan_memory
from switchgnn.profiles.profile import most_attached, network_of

_DEFAULT = Network()
_MEGA, _GIGA, _MICRO, _MILLI = 1e6, 1e9, 1e-6, 1e-3


@dataclass(frozen=True)
class LinkOptions:
    """The links that exchanges are predicted on."""

    bandwidth: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="MBIT/S",
            rich_help_panel=NETWORK,
            show_default=f"of the switch's ports, or {_DEFAULT.bits_per_second / _MEGA:g}",
            help="Of each link, for the predicted time.",
        ),
    ] = None
    delay: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="NUMBER", rich_help_panel=NETWORK, help="Microseconds on each link."
        ),
    ] = _DEFAULT.delay / _MICRO
    mtu: Annotated[
        str,
        typer.Option(
            metavar="BYTES",
            rich_help_panel=NETWORK,
            callback=known_mtu,
            help="The largest IP packet between hosts alone, into which they pack rows.",
        ),
    ] = str(USUAL_MTU)

    def network(self, profile: SwitchProfile | None, loop: float | None) -> Network:
        """Return what is predicted on.

        Args:
            profile: of the switch; None: one without limits.
            loop: its passes per second, or None.
        """
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
        up: of all workers, on their links.
        down: the same the other way.
        busiest: of the fullest link, one way.
    """

    up: int
    down: int
    busiest: int


@dataclass(frozen=True)
class Outlook:
    """What exchanges take with a plan, and between hosts alone.

    Attributes:
        plan: the way of the plan: `switch`, `mixed`, or a way of hosts alone where it leaves all.
        network: what is predicted on.
        loads: bytes by way.
        seconds: predicted by way; empty over leaves and spines.
        chosen: the way with the least; None without a prediction.
        why: one sentence for the user.
    """

    plan: str
    network: Network
    loads: Mapping[str, WayLoad]
    seconds: Mapping[str, float]
    chosen: str | None
    why: str


def forecast_of(network: Network, directions: str, width: int) -> StarForecast:
    """Return what predicts one exchange in each direction.

    Args:
        network: links and switch.
        directions: a key of DIRECTIONS.
        width: numbers of a feature.

    Returns:
        The forecast.
    """
    return StarForecast(network, {each: {width: 1.0} for each in find_directions(directions)})


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

    Args:
        plan: the plan.
        boundary: the boundary edges of the forward direction.
        forecast: predicts exchanges of one width.
        frames: what a packet of the switch weighs.
        known: the seconds that were predicted when it was made, by way; or None.
        star: whether there is one switch; exchanges over several are not predicted.

    Returns:
        Bytes and seconds of each way.
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
    loads = {way: _between_hosts(each, forecast) for way, each in rows.items()}
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


def _between_hosts(rows: Rows, forecast: StarForecast) -> WayLoad:
    return _load(*_packed(rows, forecast))


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


# The comparison with the paper's plan cuts the boundary graph once more, level by level.
_COMPARED_EDGES = 20_000_000

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PlanOptions:
    """What to plan.

    Attributes:
        graph: as load_graph takes it.
        workers: their number.
        slots: aggregators that a block may use; None: all of the switch.
        features: width F of what is exchanged; None: the graph's own, or as many as a
            fragment holds.
        asked: the preset, and strategies in place of its choices.
        directions: a key of DIRECTIONS.
        seed: for partition, blocks and order.
        link_rate: packets per second on each worker's link, or None.
        recirculation_rate: passes per second that the switch can make, or None.
        leaf_spine: the leaves that the workers are attached to, and the spines; None: a star.
        table_memory: the most bytes that the tables of a switch may take, or None.
        switch: within what it has to plan; what is None above is then the switch's. None: a switch
            that runs the program.
        links: what exchanges are predicted on.
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


@dataclass(frozen=True, eq=False)
class MadePlan:
    """A plan, and what it took to make it.

    Attributes:
        options: what was asked for.
        situation: what of it the choice depended on, the switch's included.
        choice: what the strategy stands for.
        graph: what it is for.
        plan: the plan.
        parts: those of leaves and spines; None in a star.
        memory: what it takes of the switches.
        forecast: predicts one exchange in each direction.
        predicted: the seconds by way that were predicted to choose the plan; None: it was not
            chosen by them.
        seconds: of planning, without loading the graph.
        metis_seconds: of those, inside METIS.
        peak_memory_bytes: the most that the process held while planning, graph included.
        memory_before_bytes: what it held before.
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
        made: the plan, and what it took.
        directions: the numbers, by direction.
        features: width F of the bytes.
        frames: what a packet weighs.
        outlook: whether the switch pays.
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
        """What the loop's passes of one exchange in each direction take at least; None: no rate."""
        rate = self.made.situation.recirculation_rate
        return None if rate is None else self.made.memory.loop_passes * self.frames.fragments / rate


def make_plan(options: PlanOptions, tell: Progress) -> MadePlan:
    """Load the graph and plan.

    Args:
        options: what to plan.
        tell: called with a few words at the start of each step.

    Raises:
        PlannerError: options or a graph that do not do.
        ProfileError: the switch has too few ports.
    """
    switch = options.switch
    if switch is not None:
        switch.check_attached(most_attached(options.leaf_spine, options.workers))
    tell(f"load {options.graph}")
    graph = load_graph(options.graph)
    program = load_program()
    situation = _situation(options, program.slots, _width(options, graph))
    choice = choose_asked(options.asked, graph, situation)
    assignment = options.asked.load_assignment()
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

    network = options.links.network(switch, situation.recirculation_rate)
    forecast = forecast_of(network, options.directions, _width(options, graph))
    predicted = None
    memory, start = PeakMemory(), time.perf_counter()
    asked: dict[str, Any] = {
        "program": program.digest,
        "seed": options.seed,
        "directions": options.directions,
        "assignment": assignment,
        "fits": lambda plan: not measured(plan)[1].refusals,
        "progress": tell,
    }
    with metis_time() as metis:
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


def _situation(options: PlanOptions, slots: int, width: int) -> Situation:
    """Return what was asked for, and what the switch has where nothing was."""
    banks = options.switch.banks if options.switch else BANKS
    own = options.switch.slots if options.switch else None
    lanes = options.asked.lanes_for([width], options.slots or own or slots, banks)
    asked = Situation(
        workers=options.workers,
        slots=options.slots or slots,
        link_rate=options.link_rate,
        recirculation_rate=options.recirculation_rate,
        leaf_spine=options.leaf_spine,
        lanes=lanes,
    )
    switch = options.switch
    if switch is None:
        return asked
    link_rate = switch.frames_per_second(feature_frame_bytes(lanes))
    return replace(
        asked,
        slots=options.slots or switch.slots or slots,
        link_rate=link_rate if asked.link_rate is None else asked.link_rate,
        recirculation_rate=switch.passes_per_second
        if asked.recirculation_rate is None
        else asked.recirculation_rate,
        banks=banks,
        within=True,
    )


def _width(options: PlanOptions, graph: Graph) -> int:
    """Return the numbers of a feature: as asked for, or the graph's."""
    own = BANK_LANES if graph.features is None else graph.features.shape[1]
    return options.features or own


def report_plan(made: MadePlan, tell: Progress) -> PlanReport:
    """Count what the plan costs, and what other ways would.

    Args:
        made: the plan.
        tell: called with a few words at the start of each step.
    """
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
    """Count what is between leaves and spines, by direction."""
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
    """Return what the paper's plan sends: METIS, MLGP, all sources multicast."""
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
