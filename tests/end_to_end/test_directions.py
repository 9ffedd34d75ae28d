# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Forward and backward rounds in turns, through a real switch, on a directed graph.

With partial sums, with faults and over leaves and spines they are in tests/virtual/matrix.
"""

import json
from contextlib import ExitStack

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from switchgnn.planner import BoundaryEdges, Direction, read_manifest
from tests.end_to_end.conftest import switchgnn
from tests.end_to_end.whole_graph import wrong_elements
from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS, full

WORKERS = 3
VERTICES = 60
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
TURNS = [FORWARD, BACKWARD, BACKWARD, FORWARD, FORWARD, BACKWARD]


@pytest.fixture
def adjacency():
    """A[u, v] is 1 for an edge u→v; few edges go both ways."""
    dense = np.random.default_rng(8).random((VERTICES, VERTICES)) < 0.08
    np.fill_diagonal(dense, False)
    return csr_matrix(dense.astype(np.int64))


@pytest.fixture(params=["multicast", pytest.param("cover", marks=full)])
def send(request):
    return request.param


@pytest.fixture(params=TARGETS)
def directed_bed(request, send, adjacency, tmp_path):
    save_npz(tmp_path / "directed.npz", adjacency)
    options = {"graph": str(tmp_path / "directed.npz"), "slots": 12, "directions": "both"}
    with bed(request.param, WORKERS, tmp_path, send=send, **options) as made:
        yield made


def wrong_sums(bed, adjacency, rounds=TURNS, **options):
    generator = np.random.default_rng(1)
    features = [
        generator.standard_normal((VERTICES, 40)).astype(np.float32) * 2.0**index
        for index in range(len(rounds))
    ]
    bed.install()
    with ExitStack() as stack:
        team = Team(bed, stack, **options)
        results = team.exchange(features, rounds)
        assert not team.errors, team.errors
    return [
        wrong_elements(bed.plan, adjacency.T if direction is FORWARD else adjacency, each, result)
        for direction, each, result in zip(rounds, features, results, strict=True)
    ]


def test_both_directions_in_turns_are_exact(directed_bed, adjacency):
    manifest = directed_bed.plan.manifest
    assert manifest.direction(FORWARD).last_block > 1
    assert manifest.blocks > manifest.direction(BACKWARD).first_block > 2
    assert wrong_sums(directed_bed, adjacency) == [0] * len(TURNS)


def test_a_backward_round_may_be_the_first(directed_bed, adjacency):
    assert wrong_sums(directed_bed, adjacency, [BACKWARD, FORWARD]) == [0, 0]


@full
def test_faults_change_no_sum_of_either_direction(directed_bed, adjacency):
    faults = "loss=0.03,duplicate=0.03,reorder=0.05,seed=4"
    assert wrong_sums(directed_bed, adjacency, faults=faults) == [0] * len(TURNS)


def test_backward_blocks_with_forward_edges_are_noticed(monkeypatch, tmp_path, adjacency):
    monkeypatch.setattr(BoundaryEdges, "transposed", lambda edges: edges)
    save_npz(tmp_path / "directed.npz", adjacency)
    options = {"graph": str(tmp_path / "directed.npz"), "slots": 12, "directions": "both"}
    with bed(TARGETS[0].values[0], WORKERS, tmp_path, **options) as made:
        wrong = wrong_sums(made, adjacency)
    assert [number > 0 for number in wrong] == [turn is BACKWARD for turn in TURNS]


def test_the_command_line_predicts_each_direction(adjacency, tmp_path):
    save_npz(tmp_path / "directed.npz", adjacency)
    options = ("--workers", 3, "--slots", 12, "--out", tmp_path / "plan", "--directions", "both")
    result = switchgnn("plan", tmp_path / "directed.npz", *options, "--json")
    assert result.returncode == 0, result.stderr
    reported = json.loads(result.stdout)["directions"]
    manifest = read_manifest(tmp_path / "plan")
    for direction in Direction:
        prediction = manifest.direction(direction).prediction
        ours = reported[direction.value]["ways"]["plan"]
        assert ours["up"]["packets"] == sum(prediction.packets_up)
        assert ours["down"]["packets"] == sum(prediction.packets_down)
