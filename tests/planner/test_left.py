"""Plans that leave some destinations to the hosts."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.planner import Direction, read_plan, write_plan
from switchgnn.planner.check.plan import check_plan
from tests.planner import helpers
from tests.planner.check.test_plan import GRAPH, refused
from tests.planner.forgery import content_of

BOTH = (Direction.FORWARD, Direction.BACKWARD)
CHOSEN = np.random.default_rng(5).random(60) < 0.5


@pytest.fixture(scope="module")
def plan():
    return helpers.plan_of(GRAPH, directions="both", left=CHOSEN)


def destinations(graph, assignment, direction):
    boundary = helpers.boundary_of(graph, assignment)
    found = np.zeros(graph.vertices, dtype=bool)
    found[boundary.destination if direction is Direction.FORWARD else boundary.source] = True
    return found


@helpers.given(
    *(helpers.split_graphs(), st.integers(2, 45), st.sampled_from(["forward", "both"])),
    *(st.sampled_from(["multicast", "cover"]), st.integers(0, 99)),
    settings=helpers.FEWER,
)
def test_every_destination_is_in_blocks_or_left(split, slots, directions, send, seed):
    graph, workers, assignment = split
    draw = np.random.default_rng(seed)
    forward, backward = draw.random((2, graph.vertices)) < draw.random()
    left = dict(zip(BOTH, (forward, backward if seed % 2 else forward), strict=True))
    options = {"assignment": assignment, "directions": directions, "send": send, "left": left}
    plan = helpers.plan_of(graph, workers, slots, **options)
    for direction in BOTH[: 1 + (directions == "both")]:
        here = np.isin(plan.switch.result_block, plan.manifest.direction(direction).block_numbers)
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


def test_nothing_left_is_the_plan_without_it():
    without = helpers.plan_of(GRAPH, directions="both")
    nothing = np.zeros(60, dtype=bool)
    inner = ~np.any([destinations(GRAPH, without.assignment, each) for each in BOTH], axis=0)
    for left in (nothing, inner, {}, {Direction.BACKWARD: nothing}):
        plan = helpers.plan_of(GRAPH, directions="both", left=left)
        assert plan.manifest == without.manifest
        assert not plan.leaves_any


def test_everything_may_be_left(tmp_path):
    plan = helpers.plan_of(GRAPH, directions="both", left=np.ones(60, dtype=bool))
    assert plan.manifest.blocks == len(plan.switch.source_vertex) == 0
    assert plan.manifest.max_fan_in == 1
    write_plan(plan, tmp_path / "plan")
    assert check_plan(tmp_path / "plan", GRAPH).edges == 0


def test_a_graph_without_directions_shares_its_blocks():
    graph = helpers.random_graph(60, 300, 3)
    plan = helpers.plan_of(graph, directions="both", left=CHOSEN)
    assert plan.manifest.directions["forward"] == plan.manifest.directions["backward"]
    other = helpers.plan_of(graph, directions="both", left={Direction.BACKWARD: CHOSEN})
    assert other.manifest.directions["forward"].last_block < other.manifest.blocks


def test_a_destination_of_both_or_neither_is_found(plan):
    content = content_of(plan)
    part = content["workers"][1]
    blocks = plan.manifest.direction(Direction.FORWARD).block_numbers
    received = part["receive_row"][: part["receive_indptr"][blocks[-1]]]
    part["left_forward"] = np.union1d(part["left_forward"], received[:1])
    for graph in (GRAPH, None):
        assert "is served, but left to the hosts" in refused(content, graph)
    content = content_of(plan)
    part = content["workers"][1]
    part["left_backward"] = part["left_backward"][1:]
    assert "is served by no packet" in refused(content)
    # Without the graph the other direction tells, where its edges are known.
    refused(content, None)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda rows, n: rows[::-1], "not ascending"),
        (np.append, "left_forward: it has numbers outside"),
        (lambda rows, n: np.insert(rows, 0, -1), "left_forward: it has numbers outside"),
    ],
)
def test_strange_rows_are_found(plan, change, part):
    content = content_of(plan)
    rows = content["workers"][2]
    rows["left_forward"] = change(rows["left_forward"], len(rows["vertices"]))
    assert part in refused(content, None)


def test_a_vertex_without_remote_neighbours_is_found(plan):
    inner = np.flatnonzero(~destinations(GRAPH, plan.assignment, Direction.FORWARD))[0]
    content = content_of(plan)
    part = content["workers"][plan.assignment[inner]]
    row = np.searchsorted(part["vertices"], inner)
    part["left_forward"] = np.union1d(part["left_forward"], row)
    assert "without any remote neighbour" in refused(content)


def test_files_that_do_not_agree_are_found(plan):
    content = content_of(plan)
    del content["workers"][1]["left_backward"]
    assert "only some files" in refused(content, None)
    for part in content["workers"]:
        part["left_forward"] = part["left_backward"] = np.zeros(0, dtype=np.int64)
    content["manifest"]["directions"].pop("backward")
    refused(content, None)


def test_what_cannot_be_left_is_refused():
    for left in (np.ones(59, dtype=bool), np.ones(60, dtype=np.int64)):
        with helpers.reports("must be bool[60]"):
            helpers.plan_of(GRAPH, left=left)
    with helpers.reports("strawman"):
        helpers.plan_of(GRAPH, blocks="strawman", order="random", left=np.ones(60, dtype=bool))
