"""The options and steps of `switchgnn plan`: load and plan, then compare."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from switchgnn.base.array_types import Int32s
from switchgnn.base.machine import PeakMemory
from switchgnn.base.options import DATA, NETWORK, OUTPUT, argument
from switchgnn.commands.shared import options as shared
from switchgnn.host.direct.framing import Framing
from switchgnn.host.wire.header import WIDEST
from switchgnn.jobs.report import plan_leaf_spine
from switchgnn.jobs.runner import widest_on
from switchgnn.p4src import program_of
from switchgnn.planner import BoundaryEdges, Graph, Plan, PlannerError, boundary_edges, presets
from switchgnn.planner.base.direction import Direction, find_directions
from switchgnn.planner.base.lanes import BANK_LANES, fragment_lanes, frame_bytes
from switchgnn.planner.blocks.mlgp import MIN_SLOTS
from switchgnn.planner.costs import report
from switchgnn.planner.costs.forecast import Outlook, StarForecast, outlook_of
from switchgnn.planner.costs.quickest import PlanSearch, QuickestPlan
from switchgnn.planner.costs.seconds import NetworkModel
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.workers import partition_workers
from switchgnn.planner.plan.leaf_spine import LeafSpineParts, split_for_leaf_spine
from switchgnn.planner.strategies import BLOCK_STRATEGIES
from switchgnn.profiles import UNLIMITED, PlanMemory, SwitchProfile, plan_memory
from switchgnn.profiles.profile import most_attached, network_of

_DEFAULT = NetworkModel()
_MEGA, _MICRO = 1e6, 1e-6
# The comparison with the paper's plan partitions the boundary graph again, level by level.
_COMPARED_EDGES = 20_000_000
Progress = Callable[[str], None]


@dataclass(frozen=True)
class LinkOptions:
    """The links that exchanges are predicted on."""

    bandwidth: float | None = NETWORK.option(
        "MBIT/S",
        "Predict times for links of this rate.",
        min=0.001,
        shown=f"of the switch's ports, or {_DEFAULT.bits_per_second / _MEGA:g}",
    )
    delay: float = NETWORK.option(
        "NUMBER",
        "Each link delays frames by this many microseconds.",
        default=_DEFAULT.delay / _MICRO,
        min=0.0,
    )
    mtu: str = shared.mtu_option(
        NETWORK, "Let hosts alone pack rows into IP packets of up to this size."
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


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options of `switchgnn plan`."""

    graph: str | None = argument(
        "GRAPH",
        "digits, karate, random:VERTICES:EDGES:SEED, reddit-like:SCALE:SEED, "
        "yelp-like:SCALE:SEED, products-like:SCALE:SEED, or a path.",
    )
    workers: int | None = shared.workers_option(None)
    workers_per_machine: int = shared.per_machine_option("With --parts, let")
    weights: shared.WeightOptions
    features: int | None = DATA.option(
        "N", "Use features of N numbers.", min=1, max=WIDEST, shown="the graph's"
    )
    seed: int = shared.seed_option()
    directions: str = DATA.option(
        "WHICH", "Plan forward or both: training also sums backward.", default="forward"
    )
    strategies: shared.PlanningOptions
    memory: shared.MemoryOptions
    topology: shared.TopologyOptions
    link_rate: float | None = NETWORK.option(
        "RATE", "Assume this many packets per second on each link, for --strategy best."
    )
    recirculation_rate: float | None = NETWORK.option(
        "RATE", "Assume this many passes per second of the switch, for --strategy best."
    )
    links: LinkOptions
    out: Path | None = OUTPUT.option("FOLDER", "Write the plan to this folder.")
    plots: Path | None = OUTPUT.option(
        "FOLDER",
        "Draw the paper's figures 1, 7, 9 and 18 of this graph, and slots and queue over time, "
        "into this folder.",
    )
    data: str | None = DATA.option(
        "DATA",
        "With --parts, use this data set instead of GRAPH: a name or file that `switchgnn train "
        "--data` takes.",
    )
    parts: bool = OUTPUT.flag(
        "Write a job to --out: the plan and each worker's part of --data.", "--parts"
    )
    transport: list[str] | None = OUTPUT.option(
        "NAME", "With --parts, also let workers use this transport; repeatable."
    )
    check: Path | None = OUTPUT.option("FOLDER", "Check the plan in this folder.")
    as_json: bool = shared.json_option("Print the report as JSON.")

    def slots_of(self) -> int | None:
        """Return the slots of --slots or --memory."""
        size = self.memory.memory_bytes
        if size is None:
            return self.strategies.slots
        if self.strategies.slots is not None:
            raise PlannerError("Give --slots or --memory, not both: a slot has 128 bytes.")
        return presets.slots_of_memory(size)


@dataclass(frozen=True, eq=False, kw_only=True)
class MadePlan(QuickestPlan):
    """A plan, and the cost of making it."""

    request: presets.PlanRequest
    features: int  # numbers of a row in the predicted exchanges
    # the profile that was planned for; None: a switch that runs the program
    switch: SwitchProfile | None
    parts: LeafSpineParts | None  # those of leaves and spines; None in a star
    memory: PlanMemory  # of the switches
    forecast: StarForecast  # predicts one exchange in each direction
    seconds: float  # of planning, without loading the graph
    peak_memory_bytes: int  # of the process while planning, graph included
    memory_before_bytes: int  # of the process before planning


@dataclass(frozen=True, eq=False)
class PlanReport:
    """A plan in numbers."""

    made: MadePlan
    directions: dict[str, report.DirectionReport]  # the numbers, by direction
    frames: Sequence[int]
    outlook: Outlook
    # the links between leaves and spines, by direction; None in a star
    leaf_spine: dict[str, report.LeafSpineDirection] | None

    @property
    def loop_seconds(self) -> float | None:
        """The least time of the loop for one exchange in each direction; None: no rate."""
        rate = self.made.context.recirculation_rate
        return None if rate is None else self.made.memory.loop_passes * len(self.frames) / rate


def make_plan(options: PlanOptions, name: str, workers: int, tell: Progress) -> MadePlan:
    """Load the graph and plan; `tell` is called at the start of each step."""
    switch, leaf_spine = options.memory.profile, options.topology.leaf_spine(workers)
    request, slots = options.strategies.request(leaf_spine), options.slots_of()
    if switch is not None:
        switch.check_attached(most_attached(leaf_spine, workers))
    tell(f"load {name}")
    graph = load_graph(name, edge_weights=options.weights.asked)
    features = options.features
    if features is None:
        features = BANK_LANES if graph.features is None else graph.features.shape[1]
    limits = switch or UNLIMITED
    program = program_of(limits.program)
    rate = options.recirculation_rate
    context = presets.PlanContext(
        workers=workers,
        slots=slots or limits.slots or program.slots,
        link_rate=options.link_rate,
        recirculation_rate=limits.passes_per_second if rate is None else rate,
        leaf_spine=leaf_spine,
        banks=limits.banks,
        least_lanes=limits.least_lanes,
        within=switch is not None,
    )
    network = options.links.network(switch, context.recirculation_rate)
    exchange = {features: 1.0}
    forecast = StarForecast(network, dict.fromkeys(find_directions(options.directions), exchange))
    allowed = options.memory.table_bytes
    if allowed is None and switch is not None:
        allowed = switch.table_bytes

    @lru_cache(maxsize=1)
    def measured(plan: Plan) -> tuple[LeafSpineParts | None, PlanMemory]:
        parts = None
        if leaf_spine is not None:
            tell("split the plan for leaves and spines")
            parts = split_for_leaf_spine(plan, leaf_spine, banks=context.banks)
        return parts, plan_memory(plan, parts, program, allowed, switch)

    memory, start = PeakMemory(), time.perf_counter()
    tell("partition the vertices over the workers")
    settings = {
        "program": program.digest,
        "seed": options.seed,
        "directions": options.directions,
        "progress": tell,
    }

    def rated(at: presets.PlanContext) -> presets.PlanContext:
        size = frame_bytes(at.lanes, at.rows)
        return replace(at, link_rate=options.link_rate or limits.frames_per_second(size))

    made = PlanSearch(
        *(request, graph, forecast, rated, widest_on(limits.program)),
        fits=lambda plan: not measured(plan)[1].refusals,
        settings=settings,
    ).quickest(context)
    seconds, peak = time.perf_counter() - start, memory.peak()
    parts, plan_takes = measured(made.plan)
    return MadePlan(
        **vars(made),
        request=request,
        features=features,
        switch=switch,
        parts=parts,
        memory=plan_takes,
        forecast=forecast,
        seconds=seconds,
        peak_memory_bytes=peak,
        memory_before_bytes=memory.before,
    )


def report_plan(made: MadePlan, tell: Progress) -> PlanReport:
    """Count the costs of the plan and of other ways."""
    manifest = made.plan.manifest
    widths = fragment_lanes(made.features, manifest.lanes, manifest.rows)
    frames = tuple(frame_bytes(each, manifest.rows) for each in widths)
    boundary = boundary_edges(made.graph, made.plan.assignment)
    directions = _report(made.graph, made.plan, boundary, frames, tell)
    leaf_spine = None
    if made.parts is not None:
        leaf_spine = {
            each: plan_leaf_spine(made.parts, manifest, boundary, Direction(each), made.features)
            for each in manifest.directions
        }
    tell("predict the seconds of exchanges")
    # Those that decided about the plan.
    seconds = None if made.auto is None else made.auto.seconds
    star = made.parts is None
    outlook = outlook_of(made.plan, boundary, made.forecast, frames, seconds, star=star)
    return PlanReport(made, directions, frames, outlook, leaf_spine)


def _report(
    graph: Graph, plan: Plan, boundary: BoundaryEdges, frames: Sequence[int], tell: Progress
) -> dict[str, report.DirectionReport]:
    known: dict[tuple[int, int], report.DirectionReport] = {}
    reports = {}
    for direction in map(Direction, plan.manifest.directions):
        record = plan.manifest.direction(direction)
        key = record.first_block, record.last_block
        if key not in known:
            edges = boundary.towards(direction)
            tell(f"compare the {direction.value} sums with other ways")
            paper = {}
            if not plan.manifest.replicated:
                paper = {presets.PAPER: _paper_packets(graph, plan, edges, direction)}
            known[key] = report.report_direction(plan, direction, edges, frames, paper)
        reports[direction.value] = known[key]
    return reports


def _paper_packets(
    graph: Graph, plan: Plan, boundary: BoundaryEdges, direction: Direction
) -> report.PacketCounts | None:
    manifest = plan.manifest
    context = presets.PlanContext(manifest.workers, manifest.slots, lanes=manifest.lanes)
    if len(boundary) > _COMPARED_EDGES or context.room < MIN_SLOTS:
        return None
    paper = presets.preset_strategies(presets.PAPER, graph, context)
    if manifest.partition.method != paper.partition:
        owner: Int32s = partition_workers(graph, manifest.workers, manifest.partition.seed)
        boundary = boundary_edges(graph, owner).towards(direction)
    make_blocks = BLOCK_STRATEGIES[paper.blocks]
    try:
        block = make_blocks(boundary, context.room, manifest.strategy.seed)
    except PlannerError:  # too many blocks: the paper has no plan here
        return None
    return report.multicast_packets(boundary, block, manifest.workers)
