"""Flows in the background: as many and as large as asked for; and what control is for."""

from dataclasses import replace
from statistics import mean

import numpy as np
import pytest

from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.wire.header import LANES
from switchgnn.lab.simulator.request import NetworkOptions, SimulatorError
from switchgnn.lab.simulator.setup import host_setup, plan_setup
from switchgnn.lab.simulator.simulation import HADOOP, run_simulation
from switchgnn.planner import load_graph
from tests.support.markers import full

from .scenes import BYTE, DELAY, FRAGMENT, Row, Sent, copies_of_plan, planned, scene

# What the background sends alone before an exchange: 25 MB of a link.
WARM_UP = 25_000_000 * BYTE


@pytest.fixture(scope="module")
def plan(graph):
    return planned(graph)


def flows_of(seed, load=0.3, seconds=0.008, **options):
    """The background beside one packet whose passes take long: it alone decides what happens."""
    packet = scene(8, [Row(1, 1, bank) for bank in range(2)], [Sent(0, [[0], [1]])])
    options |= {"background_load": load, "background_seed": seed}
    told = NetworkOptions(recirculation_rate=1 / seconds, **options)
    return run_simulation(packet, told, trace=True).background


@pytest.fixture(scope="module")
def flows():
    return flows_of(3)


def test_sizes_are_those_that_were_published(flows):
    """Kolmogorov and Smirnov: with n draws the distance exceeds 1.95 / sqrt(n) once in 1,000."""
    size, per_cent = np.array(HADOOP).T
    drawn = np.sort([flow.bytes for flow in flows.trace])
    expected = np.interp(drawn, size, per_cent / 100)
    steps = np.arange(len(drawn) + 1) / len(drawn)
    distance = max(np.abs(expected - steps[1:]).max(), np.abs(expected - steps[:-1]).max())
    assert len(drawn) > 2_000
    assert distance < 1.95 / np.sqrt(len(drawn))


@pytest.mark.parametrize("load", [0.1, 0.5])
def test_the_load_is_what_was_asked_for(load):
    """Within four standard deviations of a compound Poisson process."""
    flows = flows_of(1, load, 0.003)
    size, per_cent = np.array(HADOOP).T
    share, low, high = np.diff(per_cent / 100), size[:-1], size[1:]
    mean = (share * (low + high) / 2).sum()
    square = (share * (low**2 + low * high + high**2) / 3).sum()
    offered = load * 8 * 12.5e9 * flows.seconds
    assert abs(flows.bytes - offered) < 4 * np.sqrt(offered / mean * square)
    assert abs(flows.flows - offered / mean) < 4 * np.sqrt(offered / mean)


def test_flows_begin_as_a_poisson_process_between_any_two_hosts(flows):
    """Gaps have mean and deviation alike; no pair is left out, or its own."""
    gaps = np.diff([flow.began for flow in flows.trace])
    bound = 4 / np.sqrt(len(gaps))
    assert np.std(gaps) / np.mean(gaps) == pytest.approx(1, abs=2 * bound)
    # Of an exponential distribution a share of 1 / e is longer than the mean.
    assert np.mean(gaps > np.mean(gaps)) == pytest.approx(np.exp(-1), abs=bound)
    pairs = np.zeros((8, 8))
    for flow in flows.trace:
        pairs[flow.sender, flow.receiver] += 1
    expected = len(flows.trace) / 56
    away = pairs[~np.eye(8, dtype=bool)]
    assert (np.diag(pairs) == 0).all()
    assert np.abs(away - expected).max() < 5 * np.sqrt(expected)


@pytest.mark.parametrize("buffer", [None, 100_000, 3_000])
def test_every_byte_arrives(buffer):
    flows = flows_of(2, 0.5, 0.002, buffer=buffer)
    assert flows.flows_finished == flows.flows == len(flows.trace)
    assert flows.bytes_arrived == flows.bytes
    assert flows.bytes_sent == flows.bytes + flows.bytes_lost + flows.bytes_repeated
    assert (flows.lost > 0) == (buffer is not None)
    # A frame is padded to 60 bytes at most.
    assert 0 <= (flows.bytes - sum(flow.bytes for flow in flows.trace)) < 60 * flows.flows


def test_a_lone_flow_takes_what_its_bytes_do():
    """At next to no load: frames up one after another, and the last one down."""
    alone = [flow for flow in flows_of(1, 0.001, 0.1).trace if flow.bytes <= 8 * 1_500]
    assert len(alone) > 20
    on_time = 0
    for flow in alone:
        sizes = [1_500] * (flow.bytes // 1_500)
        sizes += [max(60, flow.bytes % 1_500)] if flow.bytes % 1_500 else []
        on_time += flow.arrived - flow.began == (sum(sizes) + sizes[0]) * BYTE + 2 * DELAY
    # Now and then two meet.
    assert on_time >= len(alone) - 2


def setup_of(system, plan, options):
    if system == "plan":
        return plan_setup(plan, 2)
    return host_setup(copies_of_plan(plan), 2 * LANES, options.pace, FRAGMENT)


@pytest.mark.parametrize("system", ["plan", "hosts"])
def test_the_exchange_is_counted_without_it(plan, system):
    """The same frames and bytes, by kind, whatever else is on the links; and it takes longer."""
    options = NetworkOptions(window=64)
    setup = setup_of(system, plan, options)
    quiet = run_simulation(setup, options)
    busy = run_simulation(setup, replace(options, background_load=0.5))
    names = ("features_up", "features_down", "sums_down", "sums", "contributions", "overflowed")
    for name in (*names, "frames_up", "bytes_up", "frames_down", "bytes_down"):
        if sum(busy.notices) == 0 or name in names:
            assert getattr(busy, name) == getattr(quiet, name)
    assert busy.seconds > quiet.seconds
    assert quiet.background is None
    assert busy.background.bytes_arrived == busy.background.bytes


@pytest.mark.parametrize("system", ["plan", "hosts"])
def test_everything_arrives_once_beside_it(plan, system):
    """Short links and a deep queue: questions come before answers, which come twice."""
    options = NetworkOptions(delay=0.0, window=64, background_load=0.6, buffer=60_000)
    setup = setup_of(system, plan, options)
    repeated = 0
    for seed in range(6):
        run = run_simulation(setup, replace(options, background_seed=seed))
        repeated += run.repeated
        if system == "plan":
            assert sum(run.sums_down) == run.sums + run.sent_again - run.lost
            assert sum(run.sums_down) == run.sums + run.repeated
        else:
            assert sum(run.features_down) == 2 * copies_of_plan(plan).sum() + run.repeated
        assert run.background.bytes_arrived == run.background.bytes
    assert repeated > 0 or system == "hosts"


def test_the_same_seed_draws_the_same(plan):
    options = NetworkOptions(window=64, background_load=0.4, buffer=20_000, background_seed=7)
    first, second, other = (
        run_simulation(plan_setup(plan, 2), each, trace=True)
        for each in (options, options, replace(options, background_seed=8))
    )
    spent = {"wall_seconds": 0, "peak_memory_bytes": 0}
    assert replace(first, **spent) == replace(second, **spent)
    assert first.background.trace != other.background.trace


def test_the_exchange_begins_when_the_background_has_run_for_a_while(plan):
    run = run_simulation(plan_setup(plan, 1), NetworkOptions(background_load=0.2), trace=True)
    assert run.series.seconds[0] == 0
    assert run.background.seconds * 1e12 > WARM_UP + max(run.finished)
    before = [flow for flow in run.background.trace if flow.began < WARM_UP]
    assert len(before) > len(run.background.trace) / 2


@pytest.mark.parametrize("load", [-0.1, 1.0, float("nan")])
def test_a_load_that_is_no_share_is_refused(plan, load):
    with pytest.raises(SimulatorError, match="from 0 and below 1"):
        run_simulation(plan_setup(plan, 1), NetworkOptions(background_load=load))


def test_one_host_alone_has_none():
    run = run_simulation(scene(1, [], []), NetworkOptions(background_load=0.5))
    assert run.background.flows == 0


SEEDS = range(2)
DEEP = NetworkOptions(buffer=500_000)
SHALLOW = NetworkOptions(buffer=60_000, ecn_threshold=80)
# With time-outs that software needs.
SLOW_SHALLOW = NetworkOptions(buffer=60_000, ecn_threshold=80, timeout=4_000.0)


def made_large():
    return plan_setup(planned(load_graph("random:3000:60000:1"), workers=8, slots=4_000), 8)


@pytest.fixture(scope="module")
def large():
    return made_large()


def runs(large, options, load):
    """With control and without, beside the same flows."""
    options = replace(options, background_load=load)
    return tuple(
        [run_simulation(large, replace(options, background_seed=s, congestion=it)) for s in SEEDS]
        for it in (CongestionRule.DCTCP, CongestionRule.NONE)
    )


def seconds(of_seeds):
    return mean(run.seconds for run in of_seeds)


def slowdown(of_seeds):
    return mean(run.background.mean_slowdown for run in of_seeds)


def marked(of_seeds):
    """Of the packets that went down to workers, the share that found more than the threshold."""
    return sum(run.marked for run in of_seeds) / sum(sum(run.frames_down) for run in of_seeds)


@pytest.mark.parametrize("load", [0.0, 0.3, 0.8])
def test_control_costs_next_to_nothing_where_nothing_is_lost(large, load):
    with_control, without = runs(large, DEEP, load)
    assert seconds(with_control) <= 1.1 * seconds(without)
    assert marked(with_control) < 0.5
    assert sum(run.lost for run in with_control) == 0


@pytest.mark.parametrize("load", [0.3, pytest.param(0.5, marks=full)])
def test_control_pays_where_losses_are_dear(large, load):
    """Shallow queues, and the time-outs that software needs."""
    with_control, without = runs(large, SLOW_SHALLOW, load)
    assert seconds(with_control) <= 0.5 * seconds(without)
    assert marked(with_control) < 0.5


def test_flows_keep_their_share(large):
    """Flows take as long beside an exchange with control as beside one without."""
    for options in (DEEP, SHALLOW):
        with_control, without = runs(large, options, 0.5)
        assert slowdown(with_control) <= slowdown(without) / 0.8
