"""From a request to the strategies of a plan.

Of the presets, `paper` follows the paper, and `best` sends the fewest packets; it is the default.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from switchgnn.base.array_types import Int64s
from switchgnn.base.machine import how_to_install
from switchgnn.base.names import no_such
from switchgnn.planner import strategies
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.base.lanes import BANK_LANES, LANES, ROWS, banks_of_slot
from switchgnn.planner.blocks.destination import MLGP, BlocksOver, has_mtkahypar
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition import vertex_cut
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.partition.simple import load_assignment
from switchgnn.planner.partition.workers import check_workers
from switchgnn.planner.plan.banks import BANKS, room_of
from switchgnn.planner.plan.manifest import REPLICAS
from switchgnn.planner.sending.rates import Rates

# The send strategy for which some block strategies are refined, and the end of their names.
COVER = "cover"
# The partition of an assignment that was not made by any of PARTITION_STRATEGIES.
GIVEN = "given"
# The vertex cuts that `auto` tries, and the blocks of all.
VERTEX_CUT, EVEN = "vertex-cut", "even"
_TRIED_CUTS = (VERTEX_CUT, "vertex-cut-ebv")
KNOWN: Mapping[str, Mapping[str, object]] = {
    "partition": strategies.PARTITION_STRATEGIES,
    "blocks": strategies.BLOCK_NAMES,
    "send": strategies.SEND_STRATEGIES,
    "order": strategies.ORDER_STRATEGIES,
}
PAPER, BEST, AUTO = "paper", "best", "auto"
# A slot of a bank is 32 lanes of four bytes; one fragment at a time shares the slots.
NUMBER_BYTES, SLOT_BYTES = 4, 128
# The most directed edges with which Mt-KaHyPar takes only seconds.
_MOST_HYPERGRAPH_EDGES = 500_000
# The most directed edges with which a cover for each of several weights takes a minute at most.
_MOST_TRIED_EDGES = 4_000_000
# What a pass serves on average by banks, measured on social graphs.
_CONTRIBUTIONS_PER_PASS = {1: 1.0, 2: 1.8, 4: 3.0, 8: 5.0}
# A partial sum that saves no packet is not worth more than this.
_MOST_WEIGHT = 1.0


@dataclass(frozen=True)
class PlanRequest:
    """A preset, and replacements for its strategies; None keeps those of the preset."""

    preset: str = BEST  # the default of all commands
    partition: str | None = None
    blocks: str | None = None  # a key of BLOCK_NAMES; None: those of `best` follow `send`
    send: str | None = None
    order: str | None = None
    assignment: Path | None = None  # a file for load_assignment that replaces any partition
    # numbers of the widest frame, a multiple of 8; None: with the least predicted time
    lanes: int | None = None
    pools: int | None = None  # of the switch's slots; None: 1
    rows: int | None = None  # of a frame; None: with the least predicted time

    def checked(self) -> "PlanRequest":
        """Return the same after checking all names."""
        find_preset(self.preset)
        for part, name in self.named().items():
            strategies.find_strategy(part.removesuffix("s"), name, KNOWN[part])
        check_lanes(PlanContext(1, 1, lanes=self.lanes or LANES[0], rows=self.rows or 1))
        if self.assignment is not None and self.partition is not None:
            raise PlannerError(
                f"The assignment {self.assignment} leaves no choice to the partition "
                f"{self.partition}; give one of them."
            )
        return self

    def cut(self, graph: Graph, workers: int, seed: int) -> Graph:
        """Cut the vertices of a graph, if that is what the partition says.

        Args:
            graph: any.
            workers: their number.
            seed: of the partition.

        Returns:
            The replicas, or the graph itself.
        """
        if self.partition is None or not vertex_cut.is_vertex_cut(self.partition):
            return graph
        check_workers(graph, workers)
        return vertex_cut.cut_by(self.partition, graph, workers, seed)

    @property
    def may_cut(self) -> bool:
        """Whether `auto` may cut vertices: everything that would differ is left to it."""
        asked = self.partition or self.assignment or self.send or self.blocks
        return self.preset == AUTO and not asked and (self.rows or 1) == 1

    def with_cut(
        self, graph: Graph, workers: int, seed: int
    ) -> tuple["PlanRequest", vertex_cut.ReplicaGraph] | None:
        """Choose the cut whose busiest worker shares the fewest vertices.

        Args:
            graph: any.
            workers: their number.
            seed: of the partition.

        Returns:
            A request for it, and the replicas; None: no switch has the groups for it.
        """
        made = {name: vertex_cut.cut_by(name, graph, workers, seed) for name in _TRIED_CUTS}
        name, cut = min(made.items(), key=lambda each: int(each[1].shared().max()))
        return (replace(self, partition=name), cut) if cut.sets <= vertex_cut.MOST_SETS else None

    def load_assignment(self) -> Int64s | None:
        """Return the assignment in the file, or None without one."""
        return None if self.assignment is None else load_assignment(self.assignment)

    def named(self) -> dict[str, str]:
        """Return the replacements of the preset's strategies."""
        names = {part: getattr(self, part) for part in KNOWN}
        return {part: name for part, name in names.items() if name is not None}


@dataclass(frozen=True)
class PlanContext:
    """The workers, the switch and the network that a plan is for."""

    workers: int
    slots: int  # the aggregators of the switch
    link_rate: float | None = None  # packets per second on each worker's link; None: not known
    recirculation_rate: float | None = None  # passes per second of the switch; None: not known
    # the leaves that the workers are attached to; None: a star around one switch
    leaf_spine: LeafSpine | None = None
    banks: int = BANKS  # of the switch, one of BANKS_OF_SWITCHES: additions that one pass can make
    within: bool = False  # plan for the least time within these rates
    lanes: int = BANK_LANES  # of the widest row of a frame, a multiple of 8
    least_lanes: int = 0  # numbers of the narrowest slot
    rows: int = 1  # of a frame, one of ROWS
    pools: int = 1  # that the slots are divided into, from 1 to MOST_POOLS
    # leaves of destinations complete sums, not spines; simulator only
    leaves_complete: bool = False

    @property
    def over(self) -> tuple[int, int] | None:
        """Leaves, and spines that complete sums; None: one switch adds everything."""
        if self.leaf_spine is None or self.leaf_spine.leaves == 1:
            return None
        return self.leaf_spine.leaves, 0 if self.leaves_complete else self.leaf_spine.spines

    @property
    def slot_lanes(self) -> int:
        """The numbers of a slot for those lanes."""
        return max(self.lanes, self.least_lanes)

    @property
    def banks_apart(self) -> int:
        """The slots of those lanes that one pass can add to."""
        return self.banks // banks_of_slot(self.slot_lanes)

    @property
    def room(self) -> int:
        """The sums that have a slot of one pool at once."""
        return room_of(self.slots, self.slot_lanes, self.pools)


@dataclass(frozen=True)
class ResolvedStrategies:
    """A strategy of each kind, by name, as `build_plan` takes them."""

    partition: str
    blocks: str
    send: str  # `multicast`, or `cover`: partial sums of the workers where they are fewer
    weight: float  # of `cover_edges`: the cost of a contribution, in packets
    order: str
    # a sentence for each part of the choice, by the name of the part
    because: Mapping[str, str] = field(default_factory=dict)
    # use the weight with the quickest exchange at these; None: use `weight`
    rates: Rates | None = None
    # leave destinations to the hosts where that is predicted to be quicker (build_auto)
    leaves: bool = False


Preset: TypeAlias = Callable[[Graph, PlanContext], ResolvedStrategies]


def paper(graph: Graph, context: PlanContext) -> ResolvedStrategies:
    """Choose the strategies of the paper: METIS, MLGP, GAMR, and every source multicast."""
    blocks, why_blocks = _over(MLGP, graph, context)
    return ResolvedStrategies(
        partition="metis",
        blocks=blocks,
        send="multicast",
        weight=0.0,
        order="gamr",
        because={"preset": f"This is the paper's method, sections 3.2 and 3.3.{why_blocks}"},
    )


def best(graph: Graph, context: PlanContext) -> ResolvedStrategies:
    """Choose the strategies that measured best, as far as the size of the graph allows."""
    partition, why_partition = _partition(context.leaf_spine)
    blocks, why_blocks = _blocks(graph, context)
    send, weight, why_send = _send(context)
    blocks = blocks_for(blocks, send)
    blocks, why_over = _over(blocks, graph, context)
    why_blocks += why_over
    rates = _rates(graph, context)
    if rates is not None:
        why_send = (
            "Workers send a cover of sources and partial sums whose blocks take the least time: "
            f"each link carries {rates.link:,.0f} packets per second and the switch's loop "
            f"{rates.loop:,.0f} passes."
        )
    return ResolvedStrategies(
        partition=partition,
        blocks=blocks,
        send=send,
        weight=weight,
        order="gamr",
        because={
            "partition": why_partition,
            "blocks": why_blocks,
            "send": why_send,
            "order": "The paper's order: of those measured with workers side by side the quickest.",
        },
        rates=rates,
    )


def auto(graph: Graph, context: PlanContext) -> ResolvedStrategies:
    """Choose as `best` does, and leave to the hosts what they are predicted to do faster."""
    return replace(best(graph, context), leaves=context.leaf_spine is None)


PRESETS: Mapping[str, Preset] = {PAPER: paper, BEST: best, AUTO: auto}


def preset_strategies(name: str, graph: Graph, context: PlanContext) -> ResolvedStrategies:
    """Return the strategies of a preset, a key of PRESETS."""
    preset = find_preset(name)
    for rate in (context.link_rate, context.recirculation_rate):
        if rate is not None and not rate > 0:
            raise PlannerError(f"A rate must be above 0 packets per second, but it is {rate}.")
    return preset(graph, context)


def check_lanes(context: PlanContext) -> None:
    """Refuse frames that no slot of the switch can hold."""
    lanes, banks = context.lanes, context.banks
    if lanes not in LANES or banks_of_slot(context.slot_lanes) > banks:
        most = max(each for each in LANES if banks_of_slot(each) <= banks)
        raise PlannerError(
            f"Frames of {lanes} numbers cannot be planned for a switch with {banks} banks; "
            f"possible: multiples of {LANES[0]} up to {most}."
        )
    if context.rows not in ROWS or context.rows * lanes > LANES[-1]:
        known = ", ".join(str(each) for each in ROWS if each * lanes <= LANES[-1])
        raise PlannerError(
            f"Frames with {context.rows} rows of {lanes} numbers are not possible: {known} rows of "
            f"that width fit into {LANES[-1]} numbers."
        )


def resolve_strategies(
    request: PlanRequest, graph: Graph, context: PlanContext
) -> ResolvedStrategies:
    """Return the preset's strategies with the replacements.

    Args:
        request: the preset, and what replaces its strategies.
        graph: the graph of the plan.
        context: the workers, the switch and the network that the plan is for.

    Returns:
        A strategy of each kind.

    Raises:
        PlannerError: an unknown name, pools or rows for `paper`, or a rate that is not above 0.
    """
    request.checked()
    check_lanes(context)
    if isinstance(graph, vertex_cut.ReplicaGraph):
        return _of_replicas(request, graph, context)
    for what, number in (
        ("frames have one row", context.rows),
        ("switch has one pool of slots", context.pools),
    ):
        if request.preset == PAPER and number > 1:
            raise PlannerError(
                f"The paper's {what}, not {number}: choose the strategy {BEST} or {AUTO}."
            )
    chosen = preset_strategies(request.preset, graph, context)
    named: dict[str, Any] = {**request.named()}
    because = {part: f"{part.capitalize()} {name}: as asked." for part, name in named.items()}
    if request.assignment is not None:
        named["partition"] = GIVEN
        because["partition"] = f"Workers as {request.assignment} assigns them."
    if request.send is not None:
        named.setdefault("blocks", blocks_for(chosen.blocks, request.send))
    if named.get("send", chosen.send) != COVER:
        named |= {"weight": 0.0, "rates": None}
    return replace(chosen, **named, because={**chosen.because, **because})


def _of_replicas(
    request: PlanRequest, graph: vertex_cut.ReplicaGraph, context: PlanContext
) -> ResolvedStrategies:
    if request.preset == PAPER or context.rows > 1 or request.send or request.blocks:
        raise PlannerError(
            "Workers send each replica's partial sum for its vertex in a vertex cut, which has no "
            f"other blocks and sends: leave these and --rows out, with the strategy {BEST}."
        )
    cut = (
        f"Edges over workers ({request.partition}): a vertex has {graph.replication_factor:.2f} "
        f"replicas on average, a worker at most {graph.edge_balance:.2f} times the mean of edges."
    )
    return ResolvedStrategies(
        partition=request.partition or GIVEN,
        blocks=EVEN,
        send=REPLICAS,
        weight=0.0,
        order=request.order or "gamr",
        because={"partition": f"{cut} The sum of a vertex goes back to all its replicas."},
        leaves=request.preset == AUTO and context.leaf_spine is None,
    )


def find_preset(name: str) -> Preset:
    """Find a preset by its name."""
    if name not in PRESETS:
        raise PlannerError(no_such("preset", name, sorted(PRESETS)))
    return PRESETS[name]


def blocks_for(blocks: str, send: str) -> str:
    """Return the variant of a block strategy that is refined for a send strategy."""
    name, colon, over = blocks.partition(":")
    kind = name.removesuffix(f"-{COVER}")
    covered = f"{kind}-{COVER}"
    has_cover = send == COVER and covered in strategies.BLOCK_STRATEGIES
    return f"{covered if has_cover else kind}{colon}{over}"


def slots_of_memory(memory: int, slot_features: int | None = None) -> int:
    """Return the slots that fit into bytes of memory of a switch."""
    size = slot_bytes(slot_features)
    slots = memory // size
    if slots < 1:
        raise PlannerError(f"{memory} bytes hold no slot of {size} bytes.")
    return slots


def slot_bytes(slot_features: int | None = None) -> int:
    """Return the bytes of a slot for that many numbers, or for a fragment (None)."""
    return SLOT_BYTES if slot_features is None else NUMBER_BYTES * slot_features


def _partition(leaf_spine: LeafSpine | None) -> tuple[str, str]:
    if leaf_spine is None or leaf_spine.leaves == 1:
        return "metis", "Workers by METIS: few edges between workers are few boundary vertices."
    return (
        f"metis-leaf-spine:{leaf_spine.leaves}",
        f"Workers by METIS for {leaf_spine.leaves} leaves: few sums between leaves, then few edges "
        "between workers.",
    )


def _blocks(graph: Graph, context: PlanContext) -> tuple[str, str]:
    edges = len(graph.indices)
    if context.room >= graph.vertices:
        why = f"One block: {context.room:,} slots hold all {graph.vertices:,} vertices."
    elif edges > _MOST_HYPERGRAPH_EDGES:
        why = f"Destination blocks by METIS: {edges:,} edges are too many for Mt-KaHyPar."
    elif not has_mtkahypar():
        why = (
            "Destination blocks by METIS: Mt-KaHyPar, which makes fewer packets, is not "
            f"installed ({how_to_install('hypergraph')})."
        )
    else:
        why = "Destination blocks by Mt-KaHyPar: sources are sent in the fewest blocks."
        return "hypergraph", why
    return "destination", why


def _over(blocks: str, graph: Graph, context: PlanContext) -> tuple[str, str]:
    """Return the blocks for leaves and spines, where there are any to fill, and why."""
    if context.over is None or context.room >= graph.vertices:
        return blocks, ""
    return BlocksOver(blocks, *context.over).name, (
        f" Each leaf and spine has {context.room:,} slots for what comes to it, so a block has "
        "more destinations than one switch has slots, spread over the workers."
    )


def _rates(graph: Graph, context: PlanContext) -> Rates | None:
    link, passes = context.link_rate, context.recirculation_rate
    few = len(graph.indices) <= _MOST_TRIED_EDGES
    if not (context.within and few) or link is None or passes is None:
        return None
    return Rates(link, passes, _CONTRIBUTIONS_PER_PASS[context.banks_apart])


def _send(context: PlanContext) -> tuple[str, float, str]:
    link, passes = context.link_rate, context.recirculation_rate
    if link is None or passes is None:
        why = (
            "Workers send a minimum cover of sources and partial sums: the fewest packets, as "
            "no link and recirculation rates are given."
        )
        return COVER, 0.0, why
    # All links carry packets at once, while one switch makes all passes.
    weight = context.workers * link / (passes * _CONTRIBUTIONS_PER_PASS[context.banks_apart])
    weight = min(round(weight, 3), _MOST_WEIGHT)
    why = (
        f"Workers send a cover in which a contribution costs {weight:g} packets: the links "
        f"carry {context.workers * link:,.0f} packets per second and the switch makes "
        f"{passes:,.0f} passes."
    )
    return COVER, weight, why
