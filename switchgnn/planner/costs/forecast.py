"""Predicted times of exchanges: in the switch, between hosts, or partly in each.

The preset `auto` takes whichever is quickest.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from switchgnn.base.array_types import Bools, Int64s, Integers
from switchgnn.planner import presets
from switchgnn.planner.base.arrays import distinct_pairs
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.base.lanes import (
    ROWS,
    WIDEST_ANSWER,
    banks_of_slot,
    fits_switch,
    fragment_lanes,
    sum_frame_bytes,
    widest_lanes,
)
from switchgnn.planner.blocks.mlgp import MIN_SLOTS
from switchgnn.planner.build import Progress, build_resolved
from switchgnn.planner.costs.seconds import (
    NetworkModel,
    barrier_time,
    exchange_seconds,
    host_seconds,
    packed_frames,
    shared_work,
)
from switchgnn.planner.graphs.boundary import BoundaryEdges, boundary_edges
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.vertex_cut import ReplicaGraph
from switchgnn.planner.partition.workers import check_assignment, check_workers
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.sending.between_hosts import fewest_rows, rows_between
from switchgnn.planner.strategies import PARTITION_STRATEGIES, find_strategy

# Rows grow with this power of the fewest blocks: 0 to 0.4 in plans for three real graphs.
_RESENT = 0.35
# With one pool, blocks take longer than their mean link by this power of their number: each has
# another busiest link. D pools divide the power by D squared. It is 0.1 to 0.6 for real graphs.
_UNEVEN = 0.25
# The numbers of pools that are compared.
POOLS = (1, 2, 4)
# How much longer narrower frames may take: a pass adds to fewer wide slots, and passes are work.
_NEAR = 1.04


def left_edges(plan: Plan, graph: Graph, direction: Direction) -> BoundaryEdges:
    """Return the boundary edges into the destinations that a plan leaves to the hosts."""
    if graph.digest() != plan.manifest.graph.digest:
        raise PlannerError(
            f"The plan was made for another graph than {graph.name}, so the rows between its "
            "hosts are not known."
        )
    edges = boundary_edges(graph, plan.assignment).towards(direction)
    return edges.into(plan.left(direction))


# Ways to exchange, in the order in which one is taken where several take the same time: all sums
# by the switch; some of them; none, with partial sums where they are fewer; none, with copies.
SWITCH, MIXED, HOST_PARTIAL, HOST = "switch", "mixed", "host-partial", "host"
PREDICTED_TRANSPORTS = (SWITCH, MIXED, HOST_PARTIAL, HOST)

# int64[W, W] by direction: the rows from worker a to worker b.
Rows = Mapping[Direction, Int64s]


@dataclass(frozen=True, eq=False)
class StarForecast:
    """Predicts the seconds of exchanges by hosts and a switch that share only links."""

    network: NetworkModel  # links and switch
    # by direction, the number of exchanges of each width
    exchanges: Mapping[Direction, Mapping[int, float]]
    together: bool = False  # a slot holds all fragments of a feature, so only blocks have barriers

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Those of the exchanges."""
        return tuple(self.exchanges)

    def of_plan(self, plan: Plan, left: Rows) -> float:
        """Return the seconds of all exchanges with a plan that leaves rows to the hosts."""
        return self._total(
            lambda direction, width: exchange_seconds(
                plan, direction, width, self.network, left[direction], together=self.together
            )
        )

    def of_hosts(self, rows: Rows) -> float:
        """Return the seconds of all exchanges between hosts alone."""
        return self._total(
            lambda direction, width: host_seconds(rows[direction], width, self.network)
        )

    def _total(self, seconds: Callable[[Direction, int], float]) -> float:
        return sum(
            times * seconds(direction, width)
            for direction, widths in self.exchanges.items()
            for width, times in widths.items()
        )


def host_rows(
    boundary: BoundaryEdges,
    workers: int,
    directions: tuple[Direction, ...],
    *,
    partial: bool,
    left: Mapping[Direction, Bools] | None = None,
) -> Rows:
    """Count the rows between hosts, int64[W, W], for the destinations in `left`, bool[V] each."""
    rows = {}
    for direction in directions:
        edges = boundary.towards(direction)
        if left is not None:
            edges = edges.into(left[direction])
        rows[direction] = rows_between(edges, workers, fewest_rows(edges) if partial else None)
    return rows


def host_rounds(boundary: BoundaryEdges) -> tuple[BoundaryEdges, BoundaryEdges]:
    """Return the edges from mirrors to masters, which have the lower numbers, and those back."""
    gather = boundary.source > boundary.destination
    return boundary.take(np.flatnonzero(gather)), boundary.take(np.flatnonzero(~gather))


def seconds_of_hosts(
    forecast: StarForecast,
    boundary: BoundaryEdges,
    workers: int,
    *,
    partial: bool,
    replicated: bool = False,
) -> float:
    """Predict all exchanges between hosts alone, of a vertex cut in one round after the other."""
    return sum(
        forecast.of_hosts(host_rows(edges, workers, forecast.directions, partial=partial))
        for edges in (host_rounds(boundary) if replicated else (boundary,))
    )


def choose_lanes(
    request: presets.PlanRequest,
    graph: Graph,
    context: presets.PlanContext,
    exchanges: Mapping[int, float],
    seed: int,
    *,
    network: NetworkModel | None = None,
    widest: int = WIDEST_ANSWER,
) -> tuple[presets.PlanContext, Integers | None]:
    """Add pools and a form of frames with about the least time, and assign vertices to workers.

    Rows that share a frame share its headers and the work for it, as long as there are enough.
    Narrow fragments are not longer in wide slots, but fewer sums have room at once: there are more
    blocks, and sources that are sent in several. So there are with more pools, but the barriers of
    units in flight overlap, and their busiest links differ. `exchanges` counts those of rows of
    each width, and `widest` is the widest frame of the switch. Where width, rows and pools are
    asked for, and no assignment, this is None for a graph without weights: `build_resolved` makes
    it.
    """
    owner: Integers | None = request.load_assignment()
    if isinstance(graph, ReplicaGraph):
        owner, request = graph.worker, replace(request, rows=request.rows or 1)
    numbers = POOLS if request.pools is None else (request.pools,)
    bundles = ROWS if request.rows is None else (request.rows,)
    if request.preset == presets.PAPER or context.leaf_spine is not None:
        numbers = numbers if request.pools is not None else (1,)
    if request.preset == presets.PAPER and request.rows is None:
        bundles = (1,)
    asked = len(numbers) == len(bundles) == 1 and graph.weights is None
    if request.lanes is not None and asked:
        return replace(context, lanes=request.lanes, rows=bundles[0], pools=numbers[0]), owner
    check_workers(graph, context.workers)
    if owner is None:
        name = presets.resolve_strategies(request, graph, context).partition
        make = find_strategy("partition", name, PARTITION_STRATEGIES)
        owner = make(graph, context.workers, seed)
    on, owner = network or NetworkModel(), check_assignment(graph, context.workers, owner)
    boundary = boundary_edges(graph, owner)
    vertices = np.bincount(owner[boundary.vertices()], minlength=context.workers)
    fan_out = np.bincount(boundary.source)

    def picoseconds(at: presets.PlanContext) -> float:
        blocks = max(1, -(-int(vertices.sum()) // at.room))
        # The last bundle of each block has half the rows, on average.
        unfilled = blocks * (at.rows - 1) / (2 * at.rows)
        sent = np.rint(vertices[None] * blocks**_RESENT / at.rows + unfilled).astype(np.int64)
        switch = sent.sum(axis=1) * on.switch_work
        work = int(shared_work(2 * sent * on.host_work, switch, on.cores)[0])
        # Sums that leave end passes, about as many as the first ones of sources: without the loop.
        passes = -(-fan_out // at.banks_apart) if at.rows == 1 else fan_out / at.banks_apart
        least = max(work, int(passes.sum()) * on.loop_pass)
        # Processors that are shared serve one barrier after another, whatever is in flight.
        whole = barrier_time(len(vertices), on) + 2 * on.link_delay
        waits = whole if on.cores is None else 4 * on.link_delay

        def exchange(width: int) -> float:
            sizes = fragment_lanes(width, at.lanes, at.rows)
            links = [int(sent.max()) * on.of_host(sum_frame_bytes(it, at.rows)) for it in sizes]
            alone, beside = (
                sum(max(least, link * blocks ** (_UNEVEN / pools**2)) for link in links)
                for pools in (1, at.pools)
            )
            units = blocks * len(sizes)
            inside = max((units * waits + alone) / at.pools, beside + waits)
            return float(units * (whole - waits) + inside)

        return sum(times * exchange(width) for width, times in exchanges.items())

    widths = widest_lanes(exchanges) if request.lanes is None else (request.lanes,)
    candidates = [
        replace(context, lanes=lanes, rows=each, pools=pools)
        for pools, each, lanes in product(numbers, bundles, widths)
    ]
    fit = [
        at
        for at in candidates
        if fits_switch(at.lanes, at.rows, widest)
        and banks_of_slot(at.slot_lanes) <= at.banks
        and at.room >= MIN_SLOTS
    ]
    if not fit:
        # What was asked for has little room, or is refused where the plan is made.
        return candidates[0], owner
    most = _NEAR * min(map(picoseconds, fit))
    return next(at for at in fit if picoseconds(at) <= most), owner


# The most boundary edges with which a second plan is made that serves nearly all of them.
_MOST_TRIED_EDGES = 4_000_000


@dataclass(frozen=True, eq=False)
class AutoPlan:
    """The plan with the least predicted time."""

    plan: Plan  # leaves all destinations to the hosts where these are quicker alone
    whole: Plan  # leaves nothing to the hosts
    # predicted, by the names of `costs/forecast.py`; plans that do not fit are missing
    seconds: Mapping[str, float]
    chosen: str  # the quickest transport

    @property
    def why(self) -> str:
        """One sentence for the user."""
        named = {way: f"{seconds / _MILLI:,.1f}" for way, seconds in self.seconds.items()}
        others = ", ".join(f"{way} {each}" for way, each in named.items() if way != self.chosen)
        mixed = self.chosen == MIXED
        taken = f"{SWITCH} with some destinations left to the hosts" if mixed else self.chosen
        return (
            f"auto takes {taken}: the exchanges of an epoch are predicted to take "
            f"{named[self.chosen]} ms ({others})."
        )


def build_auto(
    graph: Graph,
    choice: presets.ResolvedStrategies,
    context: presets.PlanContext,
    forecast: StarForecast,
    *,
    program: str,
    seed: int,
    directions: str = "forward",
    assignment: Integers | None = None,
    fits: Callable[[Plan], bool] | None = None,
    whole: Plan | None = None,
    progress: Progress | None = None,
) -> AutoPlan:
    """Build the plan whose exchanges are predicted to take the least time.

    Candidates leave nothing, everything, or part of the destinations to the hosts. In the latter
    the switch serves those with the most contributing workers, in 1, 2, 4, ... blocks for as long
    as that gets quicker, and in one block less than all need. `whole`, if it is known, leaves
    nothing; of a vertex cut it is the only candidate.
    """
    tell = progress or (lambda _step: None)
    room_for = fits or (lambda _plan: True)
    make = partial(
        build_resolved, graph, choice, context, program=program, seed=seed, directions=directions
    )
    if whole is None:
        whole = make(assignment=assignment, fits=fits, progress=progress)
    boundary = boundary_edges(graph, whole.assignment)
    count = partial(host_rows, boundary, context.workers, forecast.directions)
    leaving = partial(make, assignment=whole.assignment, fits=fits)

    tell("predict the seconds of exchanges")
    cut = isinstance(graph, ReplicaGraph)
    alone = partial(seconds_of_hosts, forecast, boundary, context.workers, replicated=cut)
    seconds = {HOST_PARTIAL: alone(partial=True), HOST: alone(partial=False)}
    plans = dict.fromkeys((HOST_PARTIAL, HOST), whole) if cut else {}
    if room_for(whole):
        nothing = {it: np.zeros((context.workers,) * 2, np.int64) for it in forecast.directions}
        plans[SWITCH], seconds[SWITCH] = whole, forecast.of_plan(whole, nothing)
    ranked = _ranked(boundary, graph.vertices, forecast.directions)
    blocks = -(-max(map(len, ranked.values())) // context.room)
    more = True
    for number in _numbers_of_blocks(blocks, len(boundary)) if choice.leaves and not cut else ():
        if not more and number < blocks - 1:
            continue
        tell(f"leave all but {number} of {blocks} blocks to the hosts")
        left = _all_but(ranked, number * context.room, graph.vertices)
        plan = leaving(left=left)
        found = np.inf
        if room_for(plan):
            found = forecast.of_plan(plan, count(partial=True, left=left))
        more = found < seconds.get(MIXED, np.inf)
        if more:
            plans[MIXED], seconds[MIXED] = plan, found
    ordered = {name: seconds[name] for name in PREDICTED_TRANSPORTS if name in seconds}
    chosen = min(ordered, key=ordered.__getitem__)
    if chosen not in plans:
        plans[chosen] = leaving(
            left=dict.fromkeys(Direction, np.ones(graph.vertices, dtype=np.bool_))
        )
    return AutoPlan(plans[chosen], whole, ordered, chosen)


def _numbers_of_blocks(blocks: int, edges: int) -> Iterator[int]:
    """Yield how many blocks to try: 1, 2, 4, ..., and one less than all destinations need."""
    number = 1
    while number < blocks - 1:
        yield number
        number *= 2
    if blocks > 1 and edges <= _MOST_TRIED_EDGES:
        yield blocks - 1


def _ranked(
    boundary: BoundaryEdges, vertices: int, directions: tuple[Direction, ...]
) -> dict[Direction, Int64s]:
    """Return all destinations by direction, first those that most workers contribute to."""
    ranked = {}
    for direction in directions:
        edges = boundary.towards(direction)
        into = distinct_pairs(edges.destination, edges.source_worker)[0]
        workers = np.bincount(into, minlength=vertices)
        order = np.argsort(-workers, kind="stable")
        ranked[direction] = order[: np.count_nonzero(workers)]
    return ranked


def _all_but(
    ranked: Mapping[Direction, Int64s], most: int, vertices: int
) -> dict[Direction, Bools]:
    """Return bool[V] by direction: all vertices but the first `most` destinations."""
    left = {}
    for direction, order in ranked.items():
        left[direction] = np.ones(vertices, dtype=np.bool_)
        left[direction][order[:most]] = False
    return left


def predict_ways(plan: Plan, boundary: BoundaryEdges, forecast: StarForecast) -> dict[str, float]:
    """Predict the seconds with a plan, as `switch`, and between hosts alone."""
    count = partial(host_rows, boundary, plan.manifest.workers, forecast.directions)
    left = {each: plan.left(each) for each in forecast.directions}
    cut = plan.manifest.replicated
    alone = partial(seconds_of_hosts, forecast, boundary, plan.manifest.workers, replicated=cut)
    return {
        SWITCH: forecast.of_plan(plan, count(partial=True, left=left)),
        HOST_PARTIAL: alone(partial=True),
        HOST: alone(partial=False),
    }


_MICRO, _MILLI = 1e-6, 1e-3


def transport_of(plan: Plan, directions: tuple[Direction, ...]) -> str:
    """Return `switch`, `mixed`, or `host-partial` where the plan leaves everything to the hosts."""
    if not plan.leaves_any:
        return SWITCH
    served = any(plan.manifest.direction(each).block_numbers for each in directions)
    return MIXED if served else HOST_PARTIAL


def share_served(plan: Plan, boundary: BoundaryEdges, directions: tuple[Direction, ...]) -> float:
    """Return the share of the destinations that the switch serves."""
    ends = {Direction.FORWARD: boundary.destination, Direction.BACKWARD: boundary.source}
    left = sum(int(plan.left(each).sum()) for each in directions)
    every = sum(len(np.unique(ends[each])) for each in directions)
    return 1 - left / every if every else 1.0


def verdict(
    own: str, seconds: Mapping[str, float], served: float, mtu: int, *, both: bool = False
) -> str:
    """Return a sentence on whether the switch pays; `mtu` is in bytes."""
    exchange = "exchanges of both directions are" if both else "an exchange is"
    host = min((HOST_PARTIAL, HOST), key=seconds.__getitem__)
    alone = f"between hosts alone ({host}, IP packets of up to {mtu:,} bytes)"
    hosts, with_plan = told_seconds(seconds[host]), told_seconds(seconds[own])
    if own == HOST_PARTIAL:
        tried = [seconds[name] for name in (SWITCH, MIXED) if name in seconds]
        best = f" and {told_seconds(min(tried))} with the switch" if tried else ""
        return (
            f"The switch does not pay: {exchange} predicted to take {hosts} {alone}{best}, so "
            "all is left to the hosts."
        )
    if seconds[host] < seconds[own]:
        return (
            f"The switch does not pay: {exchange} predicted to take {with_plan} with this "
            f"plan, and {hosts} {alone}."
        )
    part = "" if own == SWITCH else f" for {served:.0%} of the destinations"
    return f"The switch pays{part}: {exchange} predicted to take {with_plan}, and {hosts} {alone}."


def told_seconds(seconds: float) -> str:
    """Format a time for people."""
    if seconds < _MILLI:
        return f"{seconds / _MICRO:,.1f} µs"
    return f"{seconds / _MILLI:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"


@dataclass(frozen=True)
class TransportLoad:
    """Bytes of one exchange in each direction of the plan, headers included."""

    # on the links of all workers
    up: int
    down: int
    busiest: int  # of the fullest link, in one direction


@dataclass(frozen=True)
class Outlook:
    """The costs of exchanges with a plan, and between hosts alone."""

    plan: str  # its transport: `switch`, `mixed`, or one of hosts alone if it leaves all to them
    network: NetworkModel
    loads: Mapping[str, TransportLoad]  # bytes by transport
    seconds: Mapping[str, float]  # predicted by transport; empty over leaves and spines
    chosen: str | None  # the fastest transport; None without a prediction
    why: str  # one sentence for the user


def outlook_of(
    plan: Plan,
    boundary: BoundaryEdges,
    forecast: StarForecast,
    frames: Sequence[int],
    known: Mapping[str, float] | None,
    *,
    star: bool,
) -> Outlook:
    """Compare a plan with hosts alone, which pack rows into frames.

    `known` are the seconds by transport that were predicted when the plan was made. Exchanges over
    several switches are not predicted.
    """
    workers, directions = plan.manifest.workers, forecast.directions
    rows = {
        name: host_rows(boundary, workers, directions, partial=name == HOST_PARTIAL)
        for name in (HOST_PARTIAL, HOST)
    }
    left = host_rows(
        boundary, workers, directions, partial=True, left={it: plan.left(it) for it in directions}
    )
    own = transport_of(plan, directions)
    loads = {name: _load_of(*_packed(each, forecast)) for name, each in rows.items()}
    if own not in loads:
        loads = {own: _of_plan(plan, left, forecast, frames), **loads}
    if not star:
        why = "Exchanges over leaves and spines are not predicted."
        return Outlook(own, forecast.network, loads, {}, None, why)
    seconds = dict(known or {})
    # A plan of a vertex cut stays as it is where the switch has no room for it.
    if own not in seconds:
        ways = predict_ways(plan, boundary, forecast)
        seconds = {own: ways.pop(SWITCH), **ways}
    ordered = {name: seconds[name] for name in PREDICTED_TRANSPORTS if name in seconds}
    kept = share_served(plan, boundary, directions)
    both = len(directions) > 1
    why = verdict(own, seconds, kept, forecast.network.mtu, both=both)
    return Outlook(
        own, forecast.network, loads, ordered, min(ordered, key=ordered.__getitem__), why
    )


def _of_plan(
    plan: Plan, left: Rows, forecast: StarForecast, frames: Sequence[int]
) -> TransportLoad:
    up, down = _packed(left, forecast)
    for direction in forecast.directions:
        said = plan.manifest.direction(direction).prediction
        up = up + np.array(said.packets_up) * sum(frames)
        down = down + np.array(said.packets_down) * sum(frames)
    return _load_of(up, down)


def _packed(rows: Rows, forecast: StarForecast) -> tuple[Int64s, Int64s]:
    """Return the bytes of hosts' frames that each worker sends, and receives: int64[W] each."""
    sizes = sum(
        packed_frames(rows[direction], width, forecast.network.mtu)[1]
        for direction, widths in forecast.exchanges.items()
        for width in widths
    )
    sizes = np.asarray(sizes)
    return sizes.sum(axis=1), sizes.sum(axis=0)


def _load_of(up: Int64s, down: Int64s) -> TransportLoad:
    return TransportLoad(int(up.sum()), int(down.sum()), int(max(up.max(), down.max())))
