"""Simulated exchanges against the embedded switch, ns-3's own device, and the pace of hosts."""

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest

from switchgnn.base.native import find_compiler
from switchgnn.host import Pace
from switchgnn.host.base import pace
from switchgnn.host.base.congestion import CongestionWindow
from switchgnn.host.base.pace import CongestionRule, RoundTrip
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import copies, copy_schedules, partial_schedules
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.direct.schedule import count_rows
from switchgnn.host.wire.header import Kind
from switchgnn.jobs.run import RunOptions, run_job
from switchgnn.lab.simulator.request import LeafSpineOptions, NetworkOptions, SimulateOptions
from switchgnn.lab.simulator.setup import boundary_of_plan, host_setup, plan_setup
from switchgnn.lab.simulator.simulation import MODELS, run_simulation
from switchgnn.lab.simulator.subject import planned_subject
from switchgnn.p4src import load_program
from switchgnn.planner import build_plan, load_graph
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import fragment_lanes
from switchgnn.planner.build import build_resolved
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.presets import PlanContext, PlanRequest, resolve_strategies
from switchgnn.planner.sending.between_hosts import fewest_rows
from tests.host.direct.crew import Hub, exchange, on_hub, parts_of
from tests.host.paths.test_sampled import SampledTeam
from tests.support.commands import forkserver
from tests.support.levels import ns3_missing

from .scenes import Row, Sent, arrivals, scene

WORKERS, SLOTS, WIDTH, LANES = 3, 16, 70, 32
FRAGMENTS = 3
# On a busy machine an answer may come late: none is asked for again within a second.
PACE = Pace(window=16, shortest_timeout=1.0)
# Should one be later still, that exchange does not count.
TRIES = 10


def planned(asked, **more):
    graph, context = load_graph("karate"), PlanContext(WORKERS, SLOTS, **more)
    choice = resolve_strategies(asked, graph, context)
    return build_resolved(graph, choice, context, program=load_program().digest, seed=0)


def simulated(plan, leaf_spine=None):
    lanes = fragment_lanes(WIDTH, LANES, plan.manifest.rows)
    setup = plan_setup(plan, len(lanes), lanes=lanes, leaf_spine=leaf_spine)
    options = NetworkOptions(window=PACE.window)
    return run_simulation(setup, options, leaf_spine=leaf_spine, opening=True)


def emulated(asked, **more):
    """One exchange on embedded switches in which nothing was repeated."""
    options = RunOptions(
        graph="karate",
        workers=WORKERS,
        features=WIDTH,
        rounds=1,
        slots=SLOTS,
        target="embedded",
        fabric="loopback",
        bandwidth=None,
        seed=0,
        grpc_port=0,
        ecn_threshold=1_000,
        pace=PACE,
        request=asked,
        **more,
    )
    for _ in range(TRIES):
        report = run_job(options, lambda *_: None, forkserver=forkserver())
        if not any(report.repairs.values()):
            return report
    pytest.fail(f"{TRIES} exchanges on an idle network, and each repeated something")


@pytest.mark.parametrize(
    ("preset", "pools", "rows"), [("paper", 1, 1), ("best", 1, 1), ("best", 2, 1), ("best", 1, 4)]
)
def test_the_bytes_are_those_of_the_embedded_switch(preset, pools, rows):
    asked = PlanRequest(preset, lanes=LANES, pools=pools, rows=rows)
    run = simulated(planned(asked, pools=pools, rows=rows))
    report = emulated(asked)
    assert report.exact
    assert run.bytes_up == tuple(each.bytes_up for each in report.per_worker)
    assert run.bytes_down == tuple(each.bytes_down for each in report.per_worker)
    assert run.features_up == tuple(each.features_sent for each in report.per_worker)
    assert run.sums == sum(each.sums_received for each in report.per_worker)
    assert sum(run.frames_up) == report.frames_up
    assert sum(run.frames_down) == report.frames_down
    assert run.contributions == report.contributions


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.1])
def test_the_bytes_of_a_sample_are_those_of_the_exchange(rate):
    plan = planned(PlanRequest("best", lanes=LANES))
    options = SimulateOptions(
        **{"plan": None, "graph": "karate", "workers": WORKERS, "slots": SLOTS, "system": "best"},
        **{"layers": 2, "features": WIDTH, "seed": 4, "sampling": rate},
        network=NetworkOptions(window=PACE.window),
    )
    setup = planned_subject("best", plan, options).setup
    run = run_simulation(setup, options.network, opening=True)
    team = SampledTeam(plan, pace=PACE)
    features = np.random.default_rng(1).standard_normal((34, WIDTH), dtype=np.float32)

    def work(worker):
        team.exchanges[worker].sample(Sampling(rate, 4))
        team.exchanges[worker].aggregate(features[plan.workers[worker].vertices])

    team.run(work)
    assert not team.errors
    assert not team.total()["recalls"]
    traffic = [each.traffic for each in team.exchanges]
    assert run.bytes_up == tuple(each.bytes_up for each in traffic)
    assert run.bytes_down == tuple(each.bytes_down for each in traffic)


def test_the_bytes_between_leaves_and_spines_are_those_of_the_embedded_switches():
    """A relay, which injects nothing, counts the frames of all cables."""
    asked, attached = PlanRequest("paper", lanes=LANES), even_leaf_spine(WORKERS, 2, 2)
    run = simulated(planned(asked, leaf_spine=attached), LeafSpineOptions(2, 2))
    report = emulated(asked, leaf_spine=attached, faults="cables.loss=0")
    assert report.exact
    assert report.leaf_spine is not None
    assert sum(run.inside.sums_up) == report.leaf_spine.partial_sums
    assert (
        sum(run.inside.bytes_up) == report.leaf_spine.bytes_up == report.leaf_spine.planned_bytes_up
    )
    assert (
        sum(run.inside.bytes_down)
        == report.leaf_spine.bytes_down
        == report.leaf_spine.planned_bytes_down
    )
    assert run.bytes_up == tuple(each.bytes_up for each in report.per_worker)
    assert run.bytes_down == tuple(each.bytes_down for each in report.per_worker)
    assert run.contributions == report.contributions


@pytest.mark.parametrize(
    ("choose", "make"),
    [(copies, copy_schedules), (fewest_rows, partial_schedules)],
    ids=["host", "host-partial"],
)
@pytest.mark.parametrize("mtu", [None, 200, 1500])
def test_the_bytes_between_hosts_are_those_of_the_transport(mtu, choose, make):
    graph = load_graph("karate")
    plan = build_plan(graph, workers=WORKERS, slots=SLOTS, program=load_program().digest)
    rows = count_rows(boundary_of_plan(plan), plan.manifest.workers, choose).rows
    run = run_simulation(
        host_setup(rows, WIDTH, PACE, Framing(mtu)), NetworkOptions(window=PACE.window)
    )
    features = np.ones((graph.vertices, WIDTH), dtype=np.float32)
    parts = parts_of(plan.assignment, WORKERS)
    schedules = make(graph, plan.assignment, workers=WORKERS)
    for _ in range(TRIES):
        hub = Hub(WORKERS)
        transports = on_hub(schedules, hub=hub, pace=PACE, framing=Framing(mtu))
        exchange(transports, parts, [(features, Direction.FORWARD, False)], close=False)
        counters = [transport.counters for transport in transports]
        if not any(counters.data_resent or counters.questions for counters in counters):
            break
    else:
        pytest.fail(f"{TRIES} exchanges on an idle network, and each repeated something")
    # The kind and size of every frame; between hosts DONE only says farewell.
    frames = {kind: number for kind, number in hub.kinds().items() if kind[0] != Kind.DONE}
    data = sum(run.features_up)
    assert sum(number for (kind, _), number in frames.items() if kind == Kind.FEATURE) == data
    assert frames[Kind.ACK, 60] == sum(run.frames_up) - data
    assert sum(run.bytes_up) == sum(size * number for (_, size), number in frames.items())


PICO = 1e12
FRAME = 188 * 80
OF_EACH = 2_000


def replay(options, opened, heard):
    """When the features reach the switch, by the Python of `host/`.

    heard: (picoseconds, what a NOTICE tells, or None for an ACK), as worker 0 gets them.
    """
    delay = options.delay * 1e6
    trip = RoundTrip()
    control = CongestionWindow(options.pace, trip)
    size = options.pace.group_size
    sent, confirmed, free, now = 0, 0, 0.0, opened
    asked, reached, acks = {}, [], 0
    heard = list(heard)
    while True:
        while sent < OF_EACH:
            count = min(control.allowance(sent - confirmed, now / PICO), OF_EACH - sent)
            for _ in range(count):
                free = max(free, now) + FRAME
                reached.append(free + delay)
                asked[sent // size] = now
                sent += 1
            control.sent(count)
            if not count:
                break
        if sent == OF_EACH:
            return reached
        wait = control.wait() * PICO
        # A token that is a rounding away is there.
        now, due = (now + wait + 1, True) if wait else (float("inf"), True)
        if heard and heard[0][0] <= now:
            (now, told), due = heard.pop(0), False
        if due:
            continue
        if told is None:
            trip.measured((now - asked[acks]) / PICO)
            acks += 1
            confirmed += size
            control.acknowledged(size)
        else:
            # Three workers send as many features, and one gets as many sums as all of them.
            control.marked(told / 3, now / PICO)


@pytest.mark.parametrize("rule", [CongestionRule.DCTCP, CongestionRule.PAPER])
@pytest.mark.parametrize("threshold", [None, 440, 4])
def test_features_leave_when_those_of_the_host_would(threshold, rule, monkeypatch):
    """Three workers send to a fourth, whose queue grows, is marked, and slows them down."""
    # The host's guess is for software; its floor of the rate does not matter at this distance.
    monkeypatch.setattr(pace, "_INITIAL", 4e-3)
    marks = {"ecn_threshold": threshold, "congestion": rule}
    options = NetworkOptions(delay=1_000.0, window=256, **marks)
    packets = [Sent(w, [[w * OF_EACH + i]]) for w in range(3) for i in range(OF_EACH)]
    setup = scene(4, [Row(3, 1)] * (3 * OF_EACH), packets)
    run = run_simulation(setup, options, opening=True, trace=True)
    reached = [at for at, worker, _ in arrivals(run, Kind.FEATURE, at_switch=True) if not worker]
    heard = [
        (each.picoseconds, None if each.kind == Kind.ACK else each.count)
        for each in run.trace
        if not each.at_switch and each.worker == 0 and each.kind in (Kind.ACK, Kind.NOTICE)
    ]
    opened = arrivals(run, Kind.ADVANCE, at_switch=False)[0][0]
    assert (run.window_cuts > 0) == (threshold is not None)
    assert reached == pytest.approx(replay(options, opened, heard), abs=1_000)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if reason := ns3_missing():
        pytest.skip(reason)
    program = tmp_path_factory.mktemp("link") / "point_to_point"
    wheel = Path(importlib.util.find_spec("ns3").submodule_search_locations[0])
    (core,) = wheel.glob("lib*/libns3*-core*.so")
    libraries = [
        str(core).replace("-core", f"-{name}") for name in ("core", "network", "point-to-point")
    ]
    source = Path(__file__).parent / "point_to_point.cc"
    includes = ["-isystem", wheel / "include", f"-I{MODELS}", f"-Wl,-rpath,{core.parent}"]
    command = [find_compiler(), "-std=c++20", "-O0", *includes, source]
    subprocess.run([*command, *libraries, "-o", program], check=True)
    return program


@pytest.mark.parametrize(
    "bits_per_second",
    [37e9, *(pytest.param(rate, marks=pytest.mark.full) for rate in (10e6, 100e9))],
)
def test_frames_arrive_when_those_of_ns3_do(program, bits_per_second):
    command = [program, str(int(bits_per_second)), "2000000"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sizes, model, device_sizes, device = np.array(told.split(), dtype=np.int64).reshape(-1, 4).T
    assert len(model) == 2_000
    assert np.array_equal(sizes, device_sizes)
    # At rates of odd picoseconds per byte one rounds and the other cuts off, frame by frame.
    odd = 188 * 8e12 / bits_per_second % 1
    assert np.abs(model - device).max() <= (len(model) if odd else 0)
