"""Rows between hosts in frames up to an MTU: their number, lengths on paper, times by hand."""

from math import ceil

import numpy as np
import pytest

from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import partial_schedules
from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator.job import compute_seconds
from switchgnn.lab.simulator.request import LeafSpineOptions, NetworkOptions
from switchgnn.lab.simulator.setup import host_setup
from switchgnn.lab.simulator.simulation import run_simulation
from switchgnn.planner import PARTITION_STRATEGIES, load_graph
from switchgnn.planner.sending.phases import greedy_phases, shortest_phases

from .scenes import (
    ACK,
    BYTE,
    DELAY,
    PACKED,
    acks_at_workers,
    arrivals,
    copies_of_plan,
    features_at_switch,
    planned,
)
from .test_command import as_json

# A full frame: 14 + 20 + 26 bytes of headers, and 1,452 of the 1,454 that an MTU of 1,500 leaves.
FULL_BYTES, PAYLOAD = 1_512, 1_452
FULL = FULL_BYTES * BYTE
# A row that fills a frame.
ROW = PAYLOAD // 4


def simulated(copies, features=ROW, phases=None, **options):
    network = NetworkOptions(**options)
    setup = host_setup(np.array(copies), features, network.pace, PACKED, phases=phases)
    return run_simulation(setup, network, trace=True)


def one_direction(rows, features, **options):
    return simulated([[0, rows], [0, 0]], features, **options)


def test_two_frames_take_what_their_lengths_do():
    """Three rows of 128 numbers are 1,536 bytes: a full frame, and one of 144."""
    run = one_direction(3, 128)
    short = 144 * BYTE
    assert features_at_switch(run) == [(FULL + DELAY, 0, 1), (FULL + short + DELAY, 0, 1)]
    # The first goes down while the second comes up, and keeps it waiting.
    came = [2 * (FULL + DELAY), 2 * (FULL + DELAY) + short]
    assert [at for at, *_ in arrivals(run, Kind.FEATURE, at_switch=False)] == came
    # The second is the last of its run, and asks for an acknowledgement.
    assert run.finished == (came[1] + 2 * (ACK + DELAY), came[1])
    assert (run.bytes_up, run.bytes_down) == ((1_656, 60), (60, 1_656))
    assert (run.frames_up, run.frames_down) == ((2, 1), (1, 2))
    assert run.max_port_queue_bytes == FULL_BYTES


def test_the_window_has_the_bytes_of_its_features_and_the_rest_of_a_group():
    """512 · 188 bytes are 63 full frames; of eight that are acknowledged seven may have come."""
    run = one_direction(200, ROW, congestion=CongestionRule.NONE)
    first_answer = acks_at_workers(run)[0][0]
    assert first_answer == 9 * FULL + 2 * DELAY + 2 * (ACK + DELAY)
    there = [at for at, *_ in features_at_switch(run)]
    assert there[:70] == [(i + 1) * FULL + DELAY for i in range(70)]
    # The link rests until the acknowledgement comes.
    assert there[70] == first_answer + FULL + DELAY > there[69] + FULL


def test_a_narrow_window_has_room_for_a_group():
    """16 · 188 bytes are one full frame, and an eighth frame asks for the first answer."""
    run = one_direction(20, ROW, congestion=CongestionRule.NONE, window=16)
    there = [at for at, *_ in features_at_switch(run)]
    answers = [at for at, *_ in acks_at_workers(run)]
    assert there[7] == 8 * FULL + DELAY
    assert there[8] == answers[0] + FULL + DELAY
    assert there[16] == answers[1] + FULL + DELAY
    assert len(answers) == 3


def test_the_first_window_is_that_of_tcp():
    """Ten frames, of which eight may leave at once (RFC 6928)."""
    run = one_direction(100, ROW)
    first_answer = acks_at_workers(run)[0][0]
    began = [at - DELAY - FULL for at, *_ in features_at_switch(run)]
    assert began[:8] == [i * FULL for i in range(8)]
    # The rate goes by a first guess of the round trip, twice that of an empty network.
    assert 7 * FULL < began[8] < began[9] < first_answer
    assert began[10] == first_answer


@pytest.mark.parametrize(("threshold", "marked"), [(8, 2), (9, 1), (17, 0)])
def test_the_threshold_is_bytes(threshold, marked):
    """Three frames meet: one finds 1,512 bytes, and one 3,024; 8 · 188 are 1,504."""
    copies = np.zeros((4, 4), dtype=np.int64)
    copies[:3, 3] = 1
    assert simulated(copies, ecn_threshold=threshold).marked == marked


def test_phases_keep_links_busy_and_queues_short():
    """The busiest worker gets four times as much as the others, which without phases meet there."""
    copies = np.random.default_rng(0).integers(20, 40, (8, 8))
    copies[:, 0] *= 4
    np.fill_diagonal(copies, 0)
    network = {"bandwidth": 10_000, "congestion": CongestionRule.NONE}
    usual, phased = (simulated(copies, phases=it, **network) for it in (None, shortest_phases))
    bound = (max(phased.bytes_down) + FULL_BYTES) * 10 * BYTE + 4 * DELAY
    assert max(phased.finished) < 1.01 * bound
    assert phased.max_port_queue_bytes < 3 * FULL_BYTES < usual.max_port_queue_bytes / 10


def test_a_worker_waits_for_its_phase():
    """1 sends to 0 and then to 2, as 2 does to 0, so that 0 never gets two frames at once."""
    slot = FULL + ACK // 8
    for phases, last in ((shortest_phases, 2), (greedy_phases, 3)):
        run = simulated([[0, 0, 0], [1, 0, 1], [1, 1, 0]], phases=phases)
        came = [at for at, worker, _ in features_at_switch(run) if worker]
        assert max(came) == pytest.approx((last - 1) * slot + FULL + DELAY, abs=2 * ACK)


@pytest.mark.parametrize("mtu", [None, 50, 576, 1_500, 9_000])
@pytest.mark.parametrize("seed", range(4))
def test_bytes_on_links_are_those_of_the_closed_form(seed, mtu):
    """Whatever the network: ⌈4·F·rows / P⌉ frames of 60 bytes more, and one answer for eight."""
    rng = np.random.default_rng(seed)
    features = int(rng.choice([1, 31, 70, 128, 602]))
    graph = load_graph(f"random:{80 + 5 * seed}:{300 + 40 * seed}:{seed}")
    copies = copies_of_plan(planned(graph, workers=2 + seed % 7))
    options = NetworkOptions(
        bandwidth=float(rng.choice([10.0, 1e3, 1e5])),
        delay=float(rng.choice([0.0, 0.5, 50.0])),
        ecn_threshold=int(rng.choice([0, 5, 50])),
        window=int(rng.choice([16, 40, 512])),
        congestion=list(CongestionRule)[rng.integers(3)],
    )
    setup = host_setup(copies, features, options.pace, Framing(mtu))
    workers = len(copies)
    leaves = min(3, workers)
    star = run_simulation(setup, options)
    spread = run_simulation(setup, options, leaf_spine=LeafSpineOptions(leaves, 2))
    up, down, across = [0] * workers, [0] * workers, 0
    for sender, receiver in zip(*np.nonzero(copies), strict=True):
        if mtu is None:
            frames = int(copies[sender, receiver]) * ceil(features / 32)
            data = 188 * frames
        else:
            run = 4 * features * int(copies[sender, receiver])
            frames = ceil(run / (4 * ((mtu - 46) // 4)))
            data = run + 60 * frames
        answers = 60 * ceil(frames / 8)
        up[sender] += data
        down[receiver] += data
        up[receiver] += answers
        down[sender] += answers
        crosses = sender * leaves // workers != receiver * leaves // workers
        across += 2 * (data + answers) * crosses
    for run in (star, spread):
        assert (run.bytes_up, run.bytes_down) == (tuple(up), tuple(down))
    assert spread.inside is not None
    assert spread.inside.bytes == across


WORKERS, SEED = 5, 3
GRAPH = "random:300:2000:3"
NAMED = ("--graph", GRAPH, "--workers", WORKERS, "--seed", SEED, "--layers", 1)


def test_a_worker_adds_what_the_schedules_say():
    graph = load_graph(GRAPH)
    assignment = PARTITION_STRATEGIES["metis"](graph, WORKERS, SEED)
    told = as_json(*NAMED, "--system", "host-partial")
    source, destination = graph.edges()
    added = int((assignment[source] == assignment[destination]).sum())
    members = 0
    for schedule in partial_schedules(graph, assignment, WORKERS):
        members += int(schedule.send.sizes[schedule.send.sizes > 1].sum())
        added += len(schedule.add.column)
    assert members > 0
    most = int(np.bincount(assignment).max())
    expected = compute_seconds(most, (added + members) / WORKERS, 128, 1)
    assert told["compute_seconds"] == pytest.approx(expected)
    copied = as_json(*NAMED, "--system", "bns-gcn")
    assert told["compute_seconds"] > copied["compute_seconds"]
    assert told["bytes"] < copied["bytes"]
