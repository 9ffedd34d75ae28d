# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`host-partial` in the simulator: its rows by an exhaustive search, its bytes by schedules."""

from math import ceil

import numpy as np
import pytest

from switchgnn.host.direct.kinds import copies, partial_schedules
from switchgnn.host.direct.schedule import count_rows
from switchgnn.lab.simulator import compute_seconds, subject
from switchgnn.lab.simulator.setup import rows_of_plan
from switchgnn.planner import build_plan, load_graph
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.planner.plan.files import write_plan
from switchgnn.planner.sending.between_hosts import fewest_rows
from switchgnn.planner.strategies import PARTITION_STRATEGIES
from tests.host.direct.crew import random_case, sizes_of_frames
from tests.host.direct.test_schedules import smallest_cover

from .test_command import as_json

WORKERS, SEED = 5, 3
GRAPH = "random:300:2000:3"
NAMED = ("--graph", GRAPH, "--workers", WORKERS, "--seed", SEED, "--layers", 1)


@pytest.fixture(scope="module")
def assignment():
    return PARTITION_STRATEGIES["metis"](load_graph(GRAPH), WORKERS, SEED)


@pytest.fixture(scope="module")
def schedules(assignment):
    """What the workers of the transport read."""
    return partial_schedules(load_graph(GRAPH), assignment, WORKERS)


@pytest.mark.parametrize("seed", range(5))
def test_the_rows_of_each_pair_are_the_fewest(seed):
    graph, assignment = random_case(18, 40, 3, seed, directed=True)
    boundary = boundary_edges(graph, assignment)
    found = count_rows(boundary, 3, fewest_rows).rows
    edges = {(a, b): set() for a in range(3) for b in range(3)}
    for u, v in zip(boundary.source.tolist(), boundary.destination.tolist(), strict=True):
        edges[assignment[u], assignment[v]].add((u, v))
    assert {pair: found[pair] for pair in edges} == {
        pair: smallest_cover(each) for pair, each in edges.items()
    }
    assert found.sum() < count_rows(boundary, 3, copies).rows.sum()


@pytest.mark.parametrize("mtu", ["fragment", 576, 1500, 9000])
@pytest.mark.parametrize("width", [33, 128])
def test_the_bytes_of_each_link_are_those_of_the_transports_schedules(schedules, width, mtu):
    told = as_json(*NAMED, "--system", "host-partial", "--features", width, "--mtu", mtu)
    up, down = np.zeros(WORKERS, dtype=int), np.zeros(WORKERS, dtype=int)
    for a, schedule in enumerate(schedules):
        for b, rows in enumerate(np.diff(schedule.out_indptr).tolist()):
            sizes = sizes_of_frames(rows, width, None if mtu == "fragment" else mtu)
            answers = 60 * ceil(len(sizes) / 8)
            up[[a, b]] += [sum(sizes), answers]
            down[[b, a]] += [sum(sizes), answers]
    assert told["bytes_up"] == up.tolist()
    assert told["bytes_down"] == down.tolist()
    assert (told["system"], told["slots"], told["sums"]) == ("host-partial", 0, 0)


def test_a_worker_adds_what_the_schedules_say(schedules, assignment):
    graph = load_graph(GRAPH)
    told = as_json(*NAMED, "--system", "host-partial")
    source, destination = graph.edges()
    added = int((assignment[source] == assignment[destination]).sum())
    members = 0
    for schedule in schedules:
        members += int(schedule.send.sizes[schedule.send.sizes > 1].sum())
        added += len(schedule.add.column)
    assert members > 0
    expected = compute_seconds(
        int(np.bincount(assignment).max()), (added + members) / WORKERS, 128, 1
    )
    assert told["compute_seconds"] == pytest.approx(expected)
    copied = as_json(*NAMED, "--system", "bns-gcn")
    assert told["compute_seconds"] > copied["compute_seconds"]
    assert told["bytes"] < copied["bytes"]


@pytest.mark.parametrize("direction", Direction)
def test_a_plan_gives_the_same_rows_as_its_partition(direction):
    """Blocks cut a destination's edges apart; between hosts they are one."""
    graph, _ = random_case(80, 900, 4, 7, directed=True)
    plan = build_plan(graph, workers=4, slots=8, program="0" * 64, directions="both")
    boundary = boundary_edges(graph, plan.assignment)
    if direction is Direction.BACKWARD:
        boundary = boundary.transposed()
    for choose in (copies, fewest_rows):
        expected, found = count_rows(boundary, 4, choose), rows_of_plan(plan, choose, direction)
        assert np.array_equal(found.rows, expected.rows)
        assert found.sums == expected.sums
    assert found.sums > 0


def test_on_the_partition_of_a_plan(tmp_path):
    plan = build_plan(load_graph(GRAPH), workers=WORKERS, slots=16, program="0" * 64, seed=SEED)
    write_plan(plan, tmp_path / "plan")
    np.save(tmp_path / "workers.npy", plan.assignment)
    system = ("--system", "host-partial")
    told = as_json("--plan", tmp_path / "plan", "--layers", 1, *system)
    alone = as_json(*NAMED, *system, "--assignment", tmp_path / "workers.npy")
    for name in ("bytes_up", "bytes_down", "exchange_seconds", "compute_seconds", "system"):
        assert told[name] == alone[name]


@pytest.mark.parametrize(
    "mistake",
    [copies, lambda boundary: ~copies(boundary), lambda boundary: boundary.source % 2 == 0],
    ids=["copies only", "partial sums only", "any choice"],
)
def test_a_planted_choice_is_found(mistake, schedules, monkeypatch):
    monkeypatch.setitem(subject._SENT, "host-partial", mistake)
    with pytest.raises(AssertionError):
        test_the_bytes_of_each_link_are_those_of_the_transports_schedules(schedules, 33, 1500)
