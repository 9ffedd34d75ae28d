# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans that leave some destinations to the hosts."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import PlannerError, read_plan, write_plan
from switchgnn.planner.check.files import PlanCheckError
from switchgnn.planner.check.plan import check_plan
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from tests.planner.forgery import content_of, write_content
from tests.planner.helpers import STEADY, one_sentence, plan_of, random_graph, split_graphs

BOTH = (Direction.FORWARD, Direction.BACKWARD)


@pytest.fixture(scope="module")
def graph():
    return random_graph(60, 300, 3, directed=True)


@pytest.fixture(scope="module")
def chosen():
    return np.random.default_rng(5).random(60) < 0.5


@pytest.fixture(scope="module")
def plan(graph, chosen):
    return plan_of(graph, directions="both", left=chosen)


def destinations(graph, assignment, direction):
    """Every vertex with a remote neighbour that it sums, as bool[V]."""
    boundary = boundary_edges(graph, assignment)
    found = np.zeros(graph.vertices, dtype=bool)
    found[boundary.destination if direction is Direction.FORWARD else boundary.source] = True
    return found


def refused(content, folder, graph=None):
    write_content(content, folder)
    with pytest.raises(PlanCheckError) as error:
        check_plan(folder, graph)
    return one_sentence(error)


@STEADY
@given(
    split_graphs(),
    st.integers(2, 45),
    st.sampled_from(["forward", "both"]),
    st.sampled_from(["multicast", "cover"]),
    st.data(),
)
def test_every_destination_is_in_blocks_or_left(split, slots, directions, send, data):
    graph, workers, assignment = split
    draw = st.lists(st.booleans(), min_size=graph.vertices, max_size=graph.vertices)
    forward, backward = (np.array(data.draw(draw)) for _ in BOTH)
    if data.draw(st.booleans()):
        backward = forward
    left = dict(zip(BOTH, (forward, backward), strict=True))
    plan = plan_of(
        *(graph, workers, slots), assignment=assignment, directions=directions, send=send, left=left
    )
    for direction in BOTH[: 1 + (directions == "both")]:
        blocks = plan.manifest.direction(direction).block_numbers
        here = np.isin(plan.switch.result_block, blocks)
        summed = np.zeros(graph.vertices, dtype=bool)
        summed[plan.switch.result_vertex[here]] = True
        ends = destinations(graph, assignment, direction)
        assert np.array_equal(plan.left(direction), ends & left[direction])
        assert np.array_equal(summed, ends & ~left[direction])
    with tempfile.TemporaryDirectory() as folder:
        write_plan(plan, Path(folder) / "plan")
        assert check_plan(Path(folder) / "plan", graph) == check_plan(Path(folder) / "plan")
        again = read_plan(Path(folder) / "plan")
        for direction in BOTH:
            assert np.array_equal(again.left(direction), plan.left(direction))
        assert again.leaves_any == plan.leaves_any


def test_nothing_left_is_the_plan_without_it(graph, tmp_path):
    without = plan_of(graph, directions="both")
    nothing = np.zeros(graph.vertices, dtype=bool)
    # A vertex without remote neighbours is no destination.
    alone = random_graph(60, 300, 3, directed=True)
    inner = ~destinations(alone, without.assignment, Direction.FORWARD)
    inner &= ~destinations(alone, without.assignment, Direction.BACKWARD)
    for left in (nothing, inner, {}, {Direction.BACKWARD: nothing}):
        plan = plan_of(graph, directions="both", left=left)
        assert plan.manifest == without.manifest
        assert not plan.leaves_any


def test_everything_may_be_left(graph, tmp_path):
    plan = plan_of(graph, directions="both", left=np.ones(graph.vertices, dtype=bool))
    assert plan.manifest.blocks == len(plan.switch.source_vertex) == 0
    assert plan.manifest.max_fan_in == 1
    write_plan(plan, tmp_path / "plan")
    assert check_plan(tmp_path / "plan", graph).edges == 0


def test_the_digest_covers_what_is_left(graph, chosen, plan):
    inner = np.flatnonzero(plan.left(Direction.FORWARD))[0]
    other = chosen.copy()
    other[inner] = False
    assert plan_of(graph, directions="both", left=other).manifest.digest != plan.manifest.digest


def test_a_graph_without_directions_shares_its_blocks(tmp_path):
    graph = random_graph(60, 300, 3)
    chosen = np.random.default_rng(1).random(60) < 0.3
    plan = plan_of(graph, directions="both", left=chosen)
    assert plan.manifest.directions["forward"] == plan.manifest.directions["backward"]
    other = plan_of(graph, directions="both", left={Direction.BACKWARD: chosen})
    assert other.manifest.directions["forward"].last_block < other.manifest.blocks


def test_the_boundary_is_counted_as_a_whole(graph, plan):
    whole = plan_of(graph, directions="both").manifest.directions
    for name, record in plan.manifest.directions.items():
        assert record.prediction.boundary_edges == whole[name].prediction.boundary_edges
        assert record.prediction.host_packets_up == whole[name].prediction.host_packets_up
        assert sum(record.prediction.packets_down) < sum(whole[name].prediction.packets_down)


@pytest.mark.parametrize("known", [True, False], ids=["graph", "no graph"])
def test_a_destination_of_both_is_found(graph, plan, tmp_path, known):
    content = content_of(plan)
    part = content["workers"][1]
    blocks = plan.manifest.direction(Direction.FORWARD).block_numbers
    received = part["receive_row"][: part["receive_indptr"][blocks[-1]]]
    part["left_forward"] = np.union1d(part["left_forward"], received[:1])
    message = refused(content, tmp_path, graph if known else None)
    assert "is left to the hosts, and the switch sums it, too" in message


def test_a_destination_of_neither_is_found(graph, plan, tmp_path):
    content = content_of(plan)
    part = content["workers"][1]
    part["left_backward"] = part["left_backward"][1:]
    assert "backward: nobody serves the edge" in refused(content, tmp_path, graph)
    # Without the graph the other direction tells, where its edges are known.
    refused(content, tmp_path)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda rows, n: rows[::-1], "not ascending"),
        (np.append, "beyond its vertices"),
        (lambda rows, n: np.insert(rows, 0, -1), "beyond its vertices"),
    ],
)
def test_strange_rows_are_found(graph, plan, tmp_path, change, part):
    content = content_of(plan)
    rows = content["workers"][2]
    rows["left_forward"] = change(rows["left_forward"], len(rows["vertices"]))
    assert part in refused(content, tmp_path)


def test_a_vertex_without_remote_neighbours_is_found(graph, chosen, plan, tmp_path):
    inner = np.flatnonzero(~destinations(graph, plan.assignment, Direction.FORWARD))
    worker = plan.assignment[inner[0]]
    content = content_of(plan)
    part = content["workers"][worker]
    row = np.searchsorted(part["vertices"], inner[0])
    part["left_forward"] = np.union1d(part["left_forward"], row)
    assert "without any remote neighbour" in refused(content, tmp_path, graph)


def test_files_that_do_not_agree_are_found(plan, tmp_path):
    content = content_of(plan)
    del content["workers"][1]["left_backward"]
    assert "only some files" in refused(content, tmp_path / "some")
    for part in content["workers"]:
        part["left_forward"] = part["left_backward"] = np.zeros(0, dtype=np.int64)
    content["manifest"]["directions"].pop("backward")
    refused(content, tmp_path / "none")


def test_the_reader_refuses_rows_that_are_not_there(plan, tmp_path):
    content = content_of(plan)
    content["workers"][0]["left_forward"] = np.array([len(content["workers"][0]["vertices"])])
    write_content(content, tmp_path)
    with pytest.raises(PlannerError, match="left_forward names a row"):
        read_plan(tmp_path)


def test_what_cannot_be_left_is_refused(graph):
    for left in (np.ones(59, dtype=bool), np.ones(60, dtype=np.int64)):
        with pytest.raises(PlannerError, match=r"must be bool\[60\]"):
            plan_of(graph, left=left)
    with pytest.raises(PlannerError, match="strawman"):
        plan_of(graph, blocks="strawman", order="random", left=np.ones(60, dtype=bool))
