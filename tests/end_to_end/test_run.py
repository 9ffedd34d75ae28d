# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn run`: every sum exact, and every number what the plan predicts."""

import json
import signal
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from switchgnn.host.direct import copy_schedules, partial_schedules, rows_per_pair
from switchgnn.host.wire.header import BARRIER_FRAME_BYTES, BODY_AT
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.load import load_graph
from tests.end_to_end.conftest import run_json, switchgnn
from tests.host.direct.crew import sizes_of_frames
from tests.support.markers import COMBINATIONS, on_python, some_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

REQUIRED = {
    "target": str,
    "fabric": str,
    "workers": int,
    "graph": str,
    "features": int,
    "rounds": int,
    "exact": bool,
    "max_error": float,
    "error_bound": float,
    "bytes_up": int,
    "bytes_down": int,
    "host_bytes_up": int,
    "host_bytes_down": int,
    "host_partial_bytes_up": int,
    "host_partial_bytes_down": int,
    "passes": int,
    "contributions": int,
    "seconds": float,
}


@pytest.mark.parametrize(
    ("combination", "workers"),
    [
        *some_of(
            lambda where, workers: workers in ((0, 2, 4), (1,), (3,))[where],
            COMBINATIONS,
            [1, 2, 3, 4, 8],
        ),
        on_python(3),
    ],
)
def test_any_number_of_workers(combination, workers):
    report = run_json(combination, "--workers", workers, "--slots", 64, "--features", 33)
    check(report, workers=workers, slots=64)


@pytest.mark.parametrize(
    ("combination", "width"),
    some_of(
        lambda where, width: width in ((0, 2, 4), (1,), (3,))[where],
        COMBINATIONS,
        [1, 31, 32, 33, 128],
    ),
)
def test_any_feature_width(combination, width):
    report = run_json(combination, "--graph", "karate", "--workers", 3, "--features", width)
    assert report["features"] == width
    check(report, graph="karate", workers=3)


@pytest.mark.parametrize(
    ("combination", "partition"),
    some_of(lambda where, partition: where == 0, COMBINATIONS, ["g3", "g3-literal"]),
)
def test_any_partition(combination, partition):
    report = run_json(
        combination, "--graph", "karate", "--workers", 3, "--slots", 16, "--partition", partition
    )
    check(report, graph="karate", workers=3, slots=16, partition=partition)


def test_the_best_strategies_but_for_what_is_asked(combination, tmp_path):
    given = np.arange(34) % 3
    np.save(tmp_path / "workers.npy", given)
    options = ("--graph", "karate", "--workers", 3, "--slots", 16, "--features", 33)
    asked = ("--strategy", "best", "--blocks", "destination-cover", "--order", "bfs")
    report = run_json(combination, *options, *asked, "--assignment", tmp_path / "workers.npy")
    names = ("strategy", "partition", "block_strategy", "send", "order")
    assert [report[name] for name in names] == [
        "best",
        "given",
        "destination-cover",
        "cover",
        "bfs",
    ]
    assert "Order bfs: as asked." in report["why"]
    chosen = {"blocks": "destination-cover", "send": "cover", "order": "bfs"}
    check(report, graph="karate", workers=3, slots=16, assignment=given, **chosen)


@pytest.mark.parametrize(
    ("combination", "graph"),
    some_of(lambda where, graph: graph == (where > 0), COMBINATIONS, ["karate", "random:60:120:1"]),
)
def test_partial_sums(combination, graph):
    options = ("--graph", graph, "--workers", 3, "--slots", 16, "--send", "cover")
    report = run_json(combination, *options)
    check(report, graph=graph, workers=3, slots=16, send="cover")
    sent = predicted(graph, 3, 16, send="multicast").packets_up
    assert sum(predicted(graph, 3, 16, send="cover").packets_up) < sum(sent)


def check(report, *, graph="digits", workers, slots=None, **options):
    for name, kind in REQUIRED.items():
        assert isinstance(report[name], kind), name
    assert report["exact"] is True
    assert report["max_error"] <= report["error_bound"]
    plan = planned(graph, workers, slots, lanes=report["lanes"], **options)
    prediction = plan.manifest.direction(Direction.FORWARD).prediction
    sizes = frame_sizes(report["features"], report["lanes"])
    frames = len(sizes) * report["rounds"]
    assert report["contributions"] == prediction.contributions * frames
    # A pass that completes a slot before its last bank costs one more; an
    # acknowledgement may cost one too.
    assert report["passes"] >= prediction.passes * frames
    assert sum(w["features_sent"] for w in report["per_worker"]) == frames * sum(
        prediction.packets_up
    )
    assert sum(w["sums_received"] for w in report["per_worker"]) == frames * sum(
        prediction.packets_down
    )
    check_bytes(report, prediction, sizes)
    check_hosts_alone(report, load_graph(graph), plan.assignment)


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
        said = [worker[f"{name}_bytes_up"] for worker in report["per_worker"]]
        heard = [worker[f"{name}_bytes_down"] for worker in report["per_worker"]]
        assert (said, heard) == (up, down)
        assert report[f"{name}_bytes_up"] == report[f"{name}_bytes_down"] == sum(up)


def frame_sizes(features, lanes):
    """Bytes of the frames of a feature; the last one has the smallest sufficient width."""
    whole, left = divmod(features, lanes)
    narrow = [min(each for each in (8, 16, 32, 64, 128, 256) if each >= left)] if left else []
    return [60 + 4 * each for each in [lanes] * whole + narrow]


def check_bytes(report, prediction, sizes):
    """Every byte on a worker's wire is accounted for."""
    frames = len(sizes) * report["rounds"]
    # Without a block a round is closed by one barrier all the same.
    meetings = report["rounds"] + max(frames * report["blocks"], report["rounds"])
    for worker in report["per_worker"]:
        tally = worker["tally"]
        again = sum(tally[name] for name in ("features_resent", "probes", "features_served"))
        assert tally["features_sent"] == prediction.packets_up[worker["worker"]] * frames
        rows = prediction.packets_up[worker["worker"]] * report["rounds"]
        more = worker["bytes_up"] - (
            rows * sum(sizes)
            + (meetings + tally["barriers_repeated"]) * BARRIER_FRAME_BYTES
            + (tally["recalls"] + tally["fetches"]) * BODY_AT
        )
        # The report does not name the repeated fragments.
        assert again * min(sizes) <= more <= again * max(sizes)
        sums = prediction.packets_down[worker["worker"]] * report["rounds"]
        at_least = sums * sum(sizes) + meetings * BARRIER_FRAME_BYTES
        assert worker["bytes_down"] >= at_least


def predicted(graph, workers, slots, **options):
    plan = planned(graph, workers, slots, **options)
    return plan.manifest.direction(Direction.FORWARD).prediction


def planned(graph, workers, slots, **options):
    program = load_program()
    return build_plan(
        load_graph(graph),
        workers=workers,
        slots=slots or program.slots,
        program=program.digest,
        **options,
    )


def test_a_directed_graph_from_a_file(combination, tmp_path):
    generator = np.random.default_rng(5)
    dense = generator.random((40, 40)) < 0.1
    np.fill_diagonal(dense, False)
    dense[30:] = False
    indptr = np.concatenate([[0], dense.sum(axis=1).cumsum()])
    features = generator.standard_normal((40, 3)).astype(np.float32)
    path = tmp_path / "directed.npz"
    np.savez(path, indptr=indptr, indices=np.nonzero(dense)[1], features=features)
    report = run_json(combination, "--graph", path, "--workers", 3)
    assert report["exact"] is True
    assert report["features"] == 3


def test_the_table_says_what_ran_and_that_it_is_exact():
    result = switchgnn("run", "--graph", "karate", "--fabric", "loopback")
    assert result.returncode == 0, result.stderr
    assert "Ran on: fabric loopback: as asked; switch embedded" in result.stdout
    assert "Plan: partition metis, blocks mlgp, send multicast, order gamr." in result.stdout
    assert "Every sum equals the reference: fixed point to the bit" in result.stdout
    assert (
        "predicted for rows packed into frames up to an MTU of 1,500: host takes" in result.stdout
    )


def test_hosts_alone_have_the_mtu_that_is_asked_for(combination):
    report = run_json(combination, "--graph", "karate", "--workers", 3, "--mtu", 9000)
    check_hosts_alone(report, load_graph("karate"), planned("karate", 3, None).assignment, 9000)
    one_by_one = run_json(combination, "--graph", "karate", "--workers", 3, "--mtu", "fragment")
    assert one_by_one["host_mtu"] == "fragment"
    assert one_by_one["host_bytes_up"] > report["host_bytes_up"]
    refused = switchgnn("run", "--graph", "karate", "--mtu", "jumbo")
    assert refused.returncode == 2
    assert "MTU" in refused.stderr


def test_auto_says_why():
    result = switchgnn("run", "--graph", "karate", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["reason"].startswith("fabric ")


@pytest.mark.parametrize("as_json", [False, True], ids=["table", "json"])
def test_a_run_that_keeps_its_switch_shows_the_results_before_it_waits(tmp_path, as_json):
    printed, told = tmp_path / "printed", tmp_path / "told"
    words = ("run", "--graph", "karate", "--workers", "2", "--fabric", "loopback", "--keep")
    with (
        printed.open("w") as output,
        told.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "switchgnn.commands", *words, *(["--json"] if as_json else [])],
            stdout=output,
            stderr=errors,
        ) as process,
    ):
        try:
            wait_until(lambda: "Ctrl-C ends it" in told.read_text() or process.poll() is not None)
            shown = printed.read_text()
            assert json.loads(shown)["exact"] if as_json else "reference" in shown
            process.send_signal(signal.SIGINT)
            assert process.wait(seconds_here()) == 0
        finally:
            process.kill()
    assert printed.read_text() == shown
