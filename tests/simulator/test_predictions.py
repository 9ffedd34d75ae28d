"""The planner predicts the seconds that the simulator counts packet by packet."""

from functools import cache, partial

import numpy as np
import pytest

from switchgnn.host.direct.framing import Framing
from switchgnn.lab.simulator.request import NetworkOptions
from switchgnn.lab.simulator.setup import host_setup, mixed_setup, plan_setup
from switchgnn.lab.simulator.simulation import run_simulation
from switchgnn.planner import Direction, boundary_edges, build_plan, load_graph, partition_workers
from switchgnn.planner.base.arrays import distinct_pairs
from switchgnn.planner.base.lanes import fragment_lanes, parse_lanes
from switchgnn.planner.build import build_resolved
from switchgnn.planner.costs import forecast as costs
from switchgnn.planner.costs import seconds
from switchgnn.planner.presets import PlanContext, PlanRequest, resolve_strategies, slots_of_memory
from switchgnn.planner.sending.between_hosts import fewest_rows, rows_between
from tests.support.markers import covering

DIGITS, SOCIAL, RANDOM = "digits", "yelp-like:0.002:0", "random:2000:20000:1"
MANY_BLOCKS, ONE_BLOCK = 64, 100_000
# How far predictions may be off. Switches mark frames of long packets, which narrows windows.
SHARE, IN_POOLS, OF_HOSTS, OF_LONG_PACKETS = 0.1, 0.12, 0.15, 0.22


def check(predict, setup, share, *, mtu=1_500, **network):
    """Compare the seconds of an exchange over this network with those that are predicted."""
    options = NetworkOptions(**network)
    model = seconds.NetworkModel(
        bits_per_second=options.bandwidth * 1e6,
        delay=options.delay * 1e-6,
        passes_per_second=options.recirculation_rate,
        mtu=mtu,
    )
    assert predict(model) == pytest.approx(run_simulation(setup, options).seconds, rel=share)


@cache
def graph_for(name, workers, partition):
    return PlanRequest(partition=partition).cut(load_graph(name), workers, 0)


@cache
def made_plan(graph, preset, workers, memory, lanes, pools=1, rows=1, partition=None):
    loaded = graph_for(graph, workers, partition) if isinstance(graph, str) else graph
    context = PlanContext(workers, slots_of_memory(memory), lanes=lanes, pools=pools, rows=rows)
    choice = resolve_strategies(PlanRequest(preset, partition), loaded, context)
    return build_resolved(loaded, choice, context, program="0", seed=0)


def check_plan(plan, width, **network):
    carried = fragment_lanes(width, plan.manifest.lanes, plan.manifest.rows)
    setup = plan_setup(plan, len(carried), lanes=carried)
    share = SHARE if plan.manifest.pools == 1 else IN_POOLS
    check(partial(seconds.plan_seconds, plan, Direction.FORWARD, width), setup, share, **network)


@pytest.mark.parametrize(
    ("memory", "frames", "loop", "pools"),
    covering(
        *([20_000, 10_000_000], [(32, 16, 1), (32, 64, 1), (32, 16, 8), (None, 128, 2)]),
        *([None, 1e9, 2.5e8, 2e7], [1, 2, 4]),
    ),
)
def test_plans(memory, frames, loop, pools):
    lanes, width, rows = frames
    plan = made_plan(
        *(DIGITS, "best", 8, memory, lanes or parse_lanes("auto", [width]), pools, rows)
    )
    check_plan(plan, width, recirculation_rate=loop)


@pytest.mark.parametrize(
    ("workers", "loop", "preset"), covering([8, 32], [None, 2.5e8], ["best", "paper"])
)
def test_plans_of_other_shapes(workers, loop, preset):
    check_plan(made_plan(SOCIAL, preset, workers, 100_000, 32), 602, recirculation_rate=loop)


@pytest.mark.parametrize(
    ("graph", "cut", "workers", "width", "memory", "pools"),
    covering(
        *([DIGITS, SOCIAL], ["vertex-cut", "vertex-cut-ebv"], [8, 32], [128, 602]),
        *([20_000, 1_000_000], [1, 4]),
    ),
)
def test_vertex_cuts(graph, cut, workers, width, memory, pools):
    plan = made_plan(graph, "best", workers, memory, 32, pools, partition=cut)
    check_plan(plan, width, recirculation_rate=1e9)
    edges = boundary_edges(graph_for(graph, workers, cut), plan.assignment)
    rounds = [rows_between(each, workers) for each in costs.host_rounds(edges)]
    setups = [host_setup(rows, width, NetworkOptions().pace, Framing()) for rows in rounds]
    simulated = sum(run_simulation(setup, NetworkOptions()).seconds for setup in setups)
    forecast = costs.StarForecast(seconds.NetworkModel(), {Direction.FORWARD: {width: 1.0}})
    predicted = costs.seconds_of_hosts(forecast, edges, workers, partial=False, replicated=True)
    assert predicted == pytest.approx(simulated, rel=OF_HOSTS)


def test_passes_that_sums_end_count():
    """Without them the loop would be idle too early."""
    check_plan(made_plan(DIGITS, "paper", 32, 1_000_000, 32), 64, recirculation_rate=2.5e7)


def check_hosts(rows, width, mtu=1_500, **network):
    setup = host_setup(rows, width, NetworkOptions().pace, Framing(mtu))
    predict = partial(seconds.host_seconds, rows, width)
    check(predict, setup, OF_HOSTS if mtu == 1_500 else OF_LONG_PACKETS, mtu=mtu, **network)


@pytest.mark.parametrize(
    ("graph", "workers", "width", "mtu", "reduced"),
    covering([DIGITS, SOCIAL], [8, 32], [16, 64, 602], [1_500, 9_000], [False, True]),
)
def test_hosts(graph, workers, width, mtu, reduced):
    loaded = load_graph(graph)
    boundary = boundary_edges(loaded, partition_workers(loaded, workers, 0))
    rows = rows_between(boundary, workers, fewest_rows(boundary) if reduced else None)
    check_hosts(rows, width, mtu)


@pytest.mark.parametrize(("bandwidth", "delay"), [(10_000, 5.0), (400_000, 0.2), (1_000, 50.0)])
def test_links_of_other_rates(bandwidth, delay):
    plan = made_plan(DIGITS, "best", 8, 20_000, 32)
    check_plan(plan, 64, bandwidth=bandwidth, delay=delay)
    rows = rows_between(boundary_edges(load_graph(DIGITS), plan.assignment), 8)
    check_hosts(rows, 64, bandwidth=bandwidth, delay=delay)


@cache
def mixed_plan(name, workers, share, slots):
    """A plan that leaves the destinations of the fewest other workers, and the rows for them."""
    graph = load_graph(name)
    owner = partition_workers(graph, workers, 0)
    edges = boundary_edges(graph, owner)
    into = distinct_pairs(edges.destination, edges.source_worker)[0]
    from_workers = np.bincount(into, minlength=graph.vertices)
    found = np.flatnonzero(from_workers)
    found = found[np.argsort(from_workers[found], kind="stable")]
    left = np.zeros(graph.vertices, dtype=bool)
    left[found[: round(share * len(found))]] = True
    plan = build_plan(graph, workers=workers, slots=slots, program="0", assignment=owner, left=left)
    edges = costs.left_edges(plan, graph, Direction.FORWARD)
    return plan, rows_between(edges, workers, fewest_rows(edges))


def check_mixed(name, workers, share, slots, width, *, together=False, **network):
    plan, rows = mixed_plan(name, workers, share, slots)
    lanes = fragment_lanes(width, plan.manifest.lanes)
    switch = plan_setup(plan, len(lanes), lanes=lanes, whole_features=together)
    setup = mixed_setup(switch, rows, width, NetworkOptions().pace, Framing())
    predict = partial(
        seconds.exchange_seconds, plan, Direction.FORWARD, width, rows=rows, together=together
    )
    check(lambda model: predict(network=model), setup, OF_HOSTS, **network)


@pytest.mark.parametrize(
    ("workers", "share", "slots", "width", "loop"),
    covering([8, 32], [0.25, 0.5, 0.75, 0.95], [MANY_BLOCKS, ONE_BLOCK], [32, 128], [None, 2.5e8]),
)
def test_mixed_plans(workers, share, slots, width, loop):
    check_mixed(DIGITS, workers, share, slots, width, recirculation_rate=loop)


LINKS_FILLED = [
    (DIGITS, 8, 256, 10_000),
    (SOCIAL, 8, 64, 100_000),
    (SOCIAL, 8, 256, 10_000),
    (SOCIAL, 32, 64, 1_000),
    (RANDOM, 16, 602, 100_000),
    (RANDOM, 16, 64, 10_000),
]


@pytest.mark.parametrize(
    ("case", "share", "slots"), covering(LINKS_FILLED, [0.25, 0.75, 0.95], [MANY_BLOCKS, ONE_BLOCK])
)
def test_mixed_plans_whose_parts_fill_links(case, share, slots):
    name, workers, width, bandwidth = case
    check_mixed(name, workers, share, slots, width, bandwidth=bandwidth)


@pytest.mark.parametrize("loop", [None, 2.5e8])
@pytest.mark.parametrize("share", [0.25, 0.75, 0.95])
def test_mixed_plans_whose_fragments_travel_together(share, loop):
    for slots in (MANY_BLOCKS, ONE_BLOCK):
        check_mixed(SOCIAL, 8, share, slots, 256, recirculation_rate=loop, together=True)
