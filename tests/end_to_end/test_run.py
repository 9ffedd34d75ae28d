"""`switchgnn run`: every sum exact, every number what the plan predicts, also two at once."""

import os
import signal
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from switchgnn.host.base.pace import Pace
from switchgnn.host.direct import copy_schedules, partial_schedules, rows_per_pair
from switchgnn.host.wire.header import BARRIER_FRAME_BYTES, BODY_AT
from switchgnn.jobs import run as run_module
from switchgnn.jobs.reference import RoundResult, judge
from switchgnn.jobs.run import RunOptions, run_job
from switchgnn.p4src import load_program
from switchgnn.planner import Direction, build_plan, load_graph, reference_sums
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from tests.end_to_end.conftest import PAPER, run_json, said
from tests.host.direct.crew import sizes_of_frames
from tests.host.hybrid.crew import leaving
from tests.support.commands import forkserver, started
from tests.support.markers import COMBINATIONS, on_python, some_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


@pytest.mark.parametrize(
    ("combination", "workers"),
    [
        *some_of(
            lambda where, workers: workers in ((0, 2, 4), (), (3,))[where],
            *(COMBINATIONS, [1, 2, 3, 4, 8]),
        ),
        on_python(3),
    ],
)
def test_any_number_of_workers(combination, workers):
    report = run_json(combination, *PAPER, "--workers", workers, "--slots", 64, "--features", 33)
    check(report, workers)


def test_replicas_of_a_vertex_cut_get_one_sum(combination):
    graph = ("--graph", "karate", "--workers", 4, "--features", 40, "--slots", 8, "--pools", 2)
    report = run_json(combination, *graph, "--partition", "vertex-cut")
    assert report["passes"] == report["contributions"]
    assert report["blocks"] > 1


TOFINO = ("tofino", "loopback")
LOSSY = ("--faults", "loss=0.05,duplicate=0.02,reorder=0.05,corrupt=0.01,seed=5")


@pytest.mark.parametrize(
    "more", [LOSSY, ("--topology", "leaf-spine"), ("--partition", "vertex-cut", "--pools", 2)]
)
def test_the_tofino_program_sums_exactly(more):
    report = run_json(TOFINO, "--graph", "karate", "--workers", 4, "--features", 128, *more)
    assert report["lanes"] == 64
    assert report["backend"] == "native"
    if more != LOSSY:
        assert report["passes"] == report["contributions"]


def test_hosts_in_scapy(combination):
    report = run_json(combination, *PAPER, "--hosts", "scapy", "--workers", 3, "--slots", 64)
    check(report, 3)
    assert report["hosts"] == "Scapy"


@pytest.mark.parametrize("strategy", ["paper", "best", "best --partition vertex-cut"])
def test_hosts_in_scapy_repair_what_links_lose(strategy):
    faults = "loss=0.05,duplicate=0.02,reorder=0.05,corrupt=0.01,seed=5"
    graph = ("--graph", "karate", "--workers", 3, "--features", 40, "--slots", 16)
    options = (*graph, "--strategy", *strategy.split(), "--faults", faults)
    report = run_json(("embedded", "loopback"), "--hosts", "scapy", *options)
    assert min(report["faults_injected"].values()) > 0
    assert report["repairs"]["sums_recalled"] > 0


def check(report, workers):
    assert report["max_error"] <= report["error_bound"]
    graph, program = load_graph("digits"), load_program().digest
    plan = build_plan(graph, workers=workers, slots=64, program=program, lanes=report["lanes"])
    prediction = plan.manifest.direction(Direction.FORWARD).prediction
    whole, left = divmod(report["features"], report["lanes"])
    # The last one has the smallest sufficient width.
    narrow = [-(-left // 8) * 8] if left else []
    sizes = [60 + 4 * each for each in [report["lanes"]] * whole + narrow]
    frames = len(sizes) * report["rounds"]
    assert report["contributions"] == prediction.contributions * frames
    # A pass that completes a slot before its last bank costs one more; an
    # acknowledgement may cost one too.
    assert report["passes"] >= prediction.passes * frames
    for name, packets in (
        ("features_sent", prediction.packets_up),
        ("sums_received", prediction.packets_down),
    ):
        assert sum(w[name] for w in report["per_worker"]) == frames * sum(packets), name
    check_bytes(report, prediction, sizes)
    check_hosts_alone(report, graph, plan.assignment)


def check_hosts_alone(report, graph, assignment, mtu=1500):
    """The report's figures of `host` and `host-partial` are those of their schedules."""
    assert report["host_mtu"] == mtu
    workers, names = report["workers"], {"host": copy_schedules, "host_partial": partial_schedules}
    for name, make in names.items():
        up, down = [0] * workers, [0] * workers
        rows_of_pairs = rows_per_pair(make(graph, assignment, workers))
        for a, b in product(range(workers), repeat=2):
            frames = sizes_of_frames(rows_of_pairs[a, b].item(), report["features"], mtu)
            answers = 60 * -(-len(frames) // 8)
            for worker, sent, received in ((a, sum(frames), answers), (b, answers, sum(frames))):
                up[worker] += report["rounds"] * sent
                down[worker] += report["rounds"] * received
        sent = [worker[f"{name}_bytes_up"] for worker in report["per_worker"]]
        received = [worker[f"{name}_bytes_down"] for worker in report["per_worker"]]
        assert (sent, received) == (up, down)
        assert report[f"{name}_bytes_up"] == report[f"{name}_bytes_down"] == sum(up)


def check_bytes(report, prediction, sizes):
    """Every byte on a worker's wire is accounted for."""
    frames = len(sizes) * report["rounds"]
    # Without a block a round is closed by one barrier all the same.
    meetings = report["rounds"] + max(frames * report["blocks"], report["rounds"])
    for worker in report["per_worker"]:
        counters = worker["counters"]
        again = sum(counters[name] for name in ("features_resent", "probes", "features_served"))
        assert counters["features_sent"] == prediction.packets_up[worker["worker"]] * frames
        more = worker["bytes_up"] - (
            prediction.packets_up[worker["worker"]] * report["rounds"] * sum(sizes)
            + (meetings + counters["barriers_repeated"]) * BARRIER_FRAME_BYTES
            + (counters["recalls"] + counters["fetches"]) * BODY_AT
        )
        # The report does not name the repeated fragments.
        assert again * min(sizes) <= more <= again * max(sizes)
        sums = prediction.packets_down[worker["worker"]] * report["rounds"]
        assert worker["bytes_down"] >= sums * sum(sizes) + meetings * BARRIER_FRAME_BYTES


def test_a_run_that_keeps_its_switch_shows_the_results_before_it_waits(tmp_path):
    """With --json, too: see test_kept.py."""
    words = ("run", "--graph", "karate", "--workers", "2", "--fabric", "loopback", "--keep")
    with started(*words, log=tmp_path / "log") as child:
        wait_until(lambda: "Ctrl-C ends it" in said(child) or child.exit_code() is not None)
        assert "reference" in os.read(child.stdout.fileno(), 1 << 20).decode()
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(seconds_here()) == 0
        assert child.stdout.read() == ""


@pytest.mark.parametrize("where", [{}, {"workers": 4, "leaf_spine": even_leaf_spine(4, 2, 1)}])
def test_some_destinations_are_left_to_hosts(where):
    left = np.diff(load_graph("karate").indptr) <= 3
    options = RunOptions(
        **{"graph": "karate", "workers": 3, "features": 33, "rounds": 3, "slots": 8},
        **{"target": "embedded", "fabric": "loopback", "bandwidth": None, "seed": 0},
        **{"grpc_port": 0, "ecn_threshold": 64, "pace": Pace(), "faults": "loss=0.02,seed=6"},
    )
    with leaving(run_module, left):
        run = run_job(replace(options, **where), lambda *_: None, forkserver=forkserver())
    report = run.to_dict()
    assert report["exact"] is True
    assert report["faults_injected"]["lost"] > 0
    if where:
        leaf_spine = report["leaf_spine"]
        assert leaf_spine["partial_sums"] == leaf_spine["planned_partial_sums"] > 0


def test_a_wrong_sum_of_hosts_is_found():
    graph = load_graph("karate")
    assignment = (np.arange(graph.vertices) % 3).astype(np.int32)
    features = np.random.default_rng(1).standard_normal((graph.vertices, 4), dtype=np.float32)
    sums = reference_sums(graph, assignment, features.astype(np.float64)).astype(np.float32)
    fixed = np.zeros(features.shape, dtype=np.int32)

    def verdict(left):
        return judge(graph, assignment, features, RoundResult(fixed, sums, 1.0), left=left)

    everything = np.ones(graph.vertices, dtype=bool)
    assert verdict(everything).wrong_sums == 0
    sums[7, 2] += 1e-3
    wrong = verdict(everything)
    assert (wrong.wrong_sums, wrong.max_error > wrong.error_bound) == (1, True)
    # What the switch should have summed is missing.
    assert verdict(np.arange(graph.vertices) % 2 == 0).wrong_sums > graph.vertices
