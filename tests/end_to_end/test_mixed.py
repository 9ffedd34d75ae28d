# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn run` with plans that leave some destinations to the hosts."""

import numpy as np
import pytest

from switchgnn.commands.run import RunOptions, run_job
from switchgnn.commands.run import job as run_module
from switchgnn.commands.run.reference import RoundResult, judge
from switchgnn.host.pace import Pace
from switchgnn.planner.graphs.graph import reference_sums
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from tests.host.mixed.crew import leaving
from tests.support.commands import nursery

LOSSES = "loss=0.02,duplicate=0.02,reorder=0.02,seed=6"


def run_with(left, **changes):
    options = {
        "graph": "karate",
        "workers": 3,
        "features": 33,
        "rounds": 3,
        "slots": 8,
        "target": "embedded",
        "fabric": "loopback",
        "bandwidth": None,
        "seed": 0,
        "grpc_port": 0,
        "ecn_threshold": 64,
        "pace": Pace(),
    }
    options = RunOptions(**{**options, **changes})
    with leaving(run_module, left):
        return run_job(options, lambda *_: None, nursery=nursery()).to_dict()


@pytest.fixture(scope="module")
def graph():
    return load_graph("karate")


@pytest.mark.parametrize("faults", ["", LOSSES], ids=["sound", "losses"])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_every_sum_is_right(graph, share, faults):
    left = np.random.default_rng(2).random(graph.vertices) < share
    report = run_with(left, faults=faults)
    assert report["exact"] is True
    assert report["max_error"] <= report["error_bound"]
    assert report["boundary_vertices"] > 0
    # Copies and sums of hosts pass the switch as any frame.
    assert (report["blocks"] == 0) == (share == 1.0)
    assert bool(sum(report["faults_injected"].values())) is bool(faults)
    assert all(worker["bytes_up"] and worker["bytes_down"] for worker in report["per_worker"])


def test_leaves_and_spines_split_what_is_not_left(graph):
    left = np.diff(graph.indptr) <= 3
    report = run_with(left, workers=4, leaf_spine=even_leaf_spine(4, 2, 1), faults="cables.loss=0")
    assert report["exact"] is True
    leaf_spine = report["leaf_spine"]
    assert leaf_spine["partial_sums"] == leaf_spine["planned_partial_sums"] > 0


def test_a_wrong_sum_of_hosts_is_found(graph):
    assignment = (np.arange(graph.vertices) % 3).astype(np.int32)
    features = np.random.default_rng(1).standard_normal((graph.vertices, 4), dtype=np.float32)
    left = np.arange(graph.vertices) % 2 == 0
    sums = reference_sums(graph, assignment, features.astype(np.float64)).astype(np.float32)
    fixed = np.zeros(features.shape, dtype=np.int32)
    everything = np.ones(graph.vertices, dtype=bool)
    right = judge(graph, assignment, features, RoundResult(fixed, sums, 1.0), left=everything)
    assert right.wrong_sums == 0
    sums[7, 2] += 1e-3
    wrong = judge(graph, assignment, features, RoundResult(fixed, sums, 1.0), left=everything)
    assert (wrong.wrong_sums, wrong.max_error > wrong.error_bound) == (1, True)
    # What the switch should have summed is missing.
    missing = judge(graph, assignment, features, RoundResult(fixed, sums, 1.0), left=left)
    assert missing.wrong_sums > graph.vertices
