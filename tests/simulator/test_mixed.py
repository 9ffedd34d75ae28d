"""Some sums from the switch, others between hosts: times by hand, counts from the plans."""

from functools import cache
from math import ceil

import numpy as np
import pytest

from switchgnn.host.paths.base import Path, one_path
from switchgnn.host.paths.edges import host_edges
from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator.request import NetworkOptions, SimulatorError
from switchgnn.lab.simulator.setup import host_setup, mixed_setup, plan_setup
from switchgnn.lab.simulator.simulation import run_simulation
from switchgnn.planner import Direction, load_graph, write_plan
from switchgnn.planner.costs.forecast import left_edges
from switchgnn.planner.sending.between_hosts import fewest_rows, rows_between
from tests.host.direct.crew import sizes_of_frames
from tests.support.markers import covering

from .scenes import ACK, BARRIER, BYTE, DELAY, FEATURE, PACKED, Row, Sent, planned, scene
from .test_command import as_json, simulate

GRAPH, WORKERS, SLOTS = "random:300:2000:3", 5, 24
OPTIONS = NetworkOptions()


def beside(setup, rows, *, features=32, options=OPTIONS, trace=False):
    mixed = mixed_setup(setup, np.array(rows), features, options.pace, PACKED)
    return run_simulation(mixed, options, trace=trace)


def test_a_row_follows_a_feature_and_a_sum():
    setup = scene(3, [Row(2, 2)], [Sent(0, [[0]]), Sent(1, [[0]])])
    run = beside(setup, [[0, 0, 1], [0, 0, 0], [0, 0, 0]], trace=True)
    at_worker = [(it.picoseconds, it.kind) for it in run.trace if not it.at_switch]
    # Worker 0 sends both; on the link of worker 2 the row leaves after the sum.
    summed = 2 * FEATURE + 2 * DELAY
    assert (summed, Kind.SUM) in at_worker
    assert (summed + FEATURE, Kind.FEATURE) in at_worker
    last_done = summed + BARRIER + DELAY
    row_confirmed = summed + FEATURE + 2 * (ACK + DELAY)
    switch_through = last_done + BARRIER + DELAY
    assert row_confirmed > switch_through
    assert run.finished == (row_confirmed, switch_through, switch_through)


def test_sums_wait_for_the_rows_before_them():
    rows = np.zeros((3, 3), dtype=int)
    rows[1, 2] = 9
    packets = [*(Sent(0, [[row]]) for row in range(9)), Sent(1, [[8]])]
    setup = scene(3, [Row(2, 1)] * 8 + [Row(2, 2)], packets)
    alone = run_simulation(setup, OPTIONS)
    assert alone.finished[2] == FEATURE + 9 * FEATURE + 4 * DELAY + 2 * BARRIER
    # One frame has all nine rows. It comes to the link of worker 2 after the seventh sum.
    frame = (60 + 9 * 128) * BYTE
    assert 7 * FEATURE < FEATURE + frame < 8 * FEATURE
    assert beside(setup, rows).finished[2] == alone.finished[2] + frame


def test_done_overtakes_rows():
    """Worker 0 has nothing to wait for but an acknowledgement, and is still sending rows."""
    setup, options = scene(2, [Row(1, 1)], [Sent(0, [[0]])]), NetworkOptions(delay=DELAY / 1e7)
    run = beside(setup, [[0, 100], [0, 0]], options=options, trace=True)
    latency, frame = DELAY // 10, 1_512 * BYTE
    begins = FEATURE + ceil((ACK + 2 * latency) / frame) * frame
    assert begins < 100 * 128 * BYTE
    done = [it.picoseconds for it in run.trace if (it.kind, it.worker) == (Kind.DONE, 0)]
    assert done == [begins + BARRIER + latency]


def test_rows_travel_while_blocks_wait():
    """Four blocks have four barriers, and one round of rows takes no longer than one of them."""
    rows = [Row(1, 1, block=block) for block in range(1, 5)]
    packets = [Sent(0, [[block - 1]], block=block) for block in range(1, 5)]
    waits = scene(2, rows, packets, blocks=4)
    assert beside(waits, [[0, 0], [8, 0]]).seconds == run_simulation(waits, OPTIONS).seconds


@pytest.fixture(scope="module")
def graph():
    return load_graph(GRAPH)


@pytest.fixture(scope="module")
def plan(graph):
    return planned(graph, slots=SLOTS, left=np.arange(graph.vertices) % 2 == 0)


@pytest.fixture(scope="module")
def everything_left(graph):
    return planned(graph, slots=SLOTS, left=np.ones(graph.vertices, dtype=bool))


@pytest.fixture(scope="module")
def folders(plan, everything_left, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    write_plan(plan, folder / "half")
    write_plan(everything_left, folder / "all")
    return folder


def rows_left(plan, graph):
    edges = left_edges(plan, graph, Direction.FORWARD)
    return rows_between(edges, plan.manifest.workers, fewest_rows(edges))


class Counts:
    """Frames and bytes of each worker's link."""

    def __init__(self):
        self.frames, self.bytes = np.zeros((2, WORKERS), dtype=int)

    def add(self, worker, number, size):
        self.frames[worker] += number
        self.bytes[worker] += number * size


def expected_counts(plan, schedules, width, mtu):
    """Count both parts from the plan's arrays and from the schedules of the transport."""
    fragments, up, down = ceil(width / 32), Counts(), Counts()
    for part in plan.workers:
        sent, got = np.diff(part.send_indptr), np.diff(part.receive_indptr)
        groups = int(np.ceil(sent / 8).sum())
        for counts, data in ((up, sent), (down, got)):
            counts.add(part.worker, fragments * int(data.sum()), 188)
            counts.add(part.worker, fragments * len(data), 88)
        down.add(part.worker, fragments * groups, 60)
    for a, schedule in enumerate(schedules):
        for b, rows in enumerate(np.diff(schedule.forward.out_indptr).tolist()):
            sizes = sizes_of_frames(rows, width, mtu)
            for counts, data, answers in ((up, a, b), (down, b, a)):
                for size in sizes:
                    counts.add(data, 1, size)
                counts.add(answers, ceil(len(sizes) / 8), 60)
    return up, down


@pytest.mark.parametrize(("width", "mtu"), [(32, 1_500), (128, 576), (128, 9_000)])
def test_links_carry_both_parts_once(plan, graph, folders, width, mtu):
    over_switch = one_path(plan.manifest, Path.SWITCH)
    schedules = [each.schedule(over_switch) for each in host_edges(graph, plan)]
    up, down = expected_counts(plan, schedules, width, mtu)
    told = as_json("--plan", folders / "half", "--features", width, "--mtu", mtu)
    for name, counts in (("up", up), ("down", down)):
        assert told[f"frames_{name}"] == counts.frames.tolist()
        assert told[f"bytes_{name}"] == counts.bytes.tolist()
    assert told["sums"] == sum(told["sums_down"])
    assert told["sums"] == ceil(width / 32) * len(plan.switch.result_block)
    assert told["left"] == plan.left(Direction.FORWARD).sum() > 0
    rows = sum(int(schedule.forward.out_indptr[-1]) for schedule in schedules)
    assert told["rows_between_hosts"] == rows > 0
    assert (told["system"], told["blocks"]) == ("plan", plan.manifest.blocks)


def test_the_switch_adds_what_it_does_without_the_hosts(plan, graph):
    alone = run_simulation(plan_setup(plan, 2), OPTIONS)
    run = beside(plan_setup(plan, 2), rows_left(plan, graph), features=64)
    for name in ("sums", "contributions", "barriers", "sums_down", "sum_bytes_down", "passes"):
        assert getattr(run, name) == getattr(alone, name)
    assert run.seconds >= alone.seconds


def test_a_plan_that_leaves_all_is_hosts_alone(everything_left, graph, folders):
    rows = rows_left(everything_left, graph)
    alone = run_simulation(host_setup(rows, 64, OPTIONS.pace, PACKED), OPTIONS)
    told = as_json("--plan", folders / "all", "--features", 64)
    partial = as_json("--plan", folders / "all", "--features", 64, "--system", "host-partial")
    assert told["exchange_seconds"] == partial["exchange_seconds"] == alone.seconds
    assert told["bytes"] == partial["bytes"] == sum(alone.bytes_up) + sum(alone.bytes_down)
    assert told["compute_seconds"] == pytest.approx(partial["compute_seconds"])
    assert told["rows_between_hosts"] == rows.sum()


@pytest.mark.parametrize("seed", [0, 1])
def test_both_parts_survive_losses_beside_other_flows(plan, graph, seed):
    options = NetworkOptions(buffer=9_000, background_load=0.3, background_seed=seed)
    run = beside(plan_setup(plan, 4), rows_left(plan, graph), features=128, options=options)
    assert run.lost > 0
    assert run.sent_again > 0
    alone = run_simulation(plan_setup(plan, 4), OPTIONS)
    assert run.sums == alone.sums
    assert run.seconds > alone.seconds


def test_a_mixed_plan_needs_a_star(folders):
    with pytest.raises(SimulatorError, match="a star only: leave out --topology leaf-spine"):
        simulate("--plan", folders / "half", "--topology", "leaf-spine", "--leaves", 2)


# The strawman sends what finds no slot on as it came, and has no blocks: with few slots it may be
# faster (docs/evidence/figures.md).
OTHERS = ("bns-gcn", "host-partial", "paper", "best")
MOST = 1.02
BETWEEN_HOSTS = ("digits", 32, "20kB", 2e6)
IN_BOTH = ("digits", 32, "20kB", 1.2e9)
IN_THE_SWITCH = ("digits:80", 32, "10MB", 1.2e9)


def simulated(system, graph, workers, memory, loop):
    return as_json(
        *("--graph", graph, "--workers", workers, "--memory", memory, "--layers", 1),
        *("--features", 64, "--recirculation-rate", loop, "--system", system),
    )


@cache
def fastest_other(*cell):
    return min(simulated(system, *cell)["exchange_seconds"] for system in OTHERS)


def check_cell(*cell):
    auto = simulated("auto", *cell)
    assert auto["exchange_seconds"] <= MOST * fastest_other(*cell)
    return auto


@pytest.mark.parametrize(
    ("graph", "memory", "loop", "workers"),
    covering(["digits", "random:600:6000:1"], ["20kB", "100kB", "10MB"], [3e8, 4.8e9], [8, 16]),
)
def test_auto_is_never_slower(graph, workers, memory, loop):
    check_cell(graph, workers, memory, loop)


@pytest.mark.parametrize(
    ("cell", "chosen"),
    [(BETWEEN_HOSTS, "host-partial"), (IN_BOTH, "mixed"), (IN_THE_SWITCH, "switch")],
)
def test_the_fastest_way_is_taken(cell, chosen):
    told = check_cell(*cell)
    assert (told["system"], told["chosen"]) == ("auto", chosen)
    assert (told["plan"] is None) == (chosen == "host-partial")
    assert min(told["predicted_seconds"], key=told["predicted_seconds"].get) == chosen
    if chosen == "mixed":
        assert told["left"] > 0
        assert told["exchange_seconds"] < fastest_other(*cell)
    if chosen != "host-partial":
        assert told["exchange_seconds"] == pytest.approx(told["predicted_seconds"][chosen], rel=0.1)


def test_a_plan_in_a_folder_is_compared_with_hosts_too(tmp_path):
    graph, workers, _, loop = BETWEEN_HOSTS
    write_plan(planned(load_graph(graph), workers=workers, slots=160), tmp_path / "plan")
    named = ("--plan", tmp_path / "plan", "--features", 64, "--system")
    told = as_json(*named, "auto", "--layers", 1, "--recirculation-rate", loop)
    assert told["chosen"] == "host-partial"
    assert told["exchange_seconds"] == as_json(*named, "host-partial")["exchange_seconds"]
