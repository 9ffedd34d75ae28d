# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import PlannerError, build_plan, partition_workers
from switchgnn.planner.graphs.graph import graph_from_edges
from switchgnn.planner.partition import simple as partition_boundary
from switchgnn.planner.partition.simple import (
    balanced_boundary,
    boundary_loads,
    chunk,
    load_assignment,
    metis_volume,
    shuffled,
)
from tests.planner.helpers import (
    STEADY,
    boundary_of,
    check_everybody_has_a_vertex,
    graphs,
    random_graph,
    reports,
)


@pytest.mark.parametrize("strategy", [metis_volume, shuffled, chunk, balanced_boundary])
def test_every_worker_gets_a_vertex(strategy):
    @STEADY
    @given(graphs(), st.integers(1, 9), st.integers(0, 3))
    def holds(graph, workers, seed):
        check_everybody_has_a_vertex(strategy, graph, workers, seed)

    holds()


@pytest.mark.parametrize("strategy", [shuffled, chunk])
def test_equal_shares(strategy):
    shares = np.bincount(strategy(random_graph(1003, 3000, 0), 16, 0))
    assert shares.max() - shares.min() <= 1


def test_chunks_are_runs():
    assert chunk(random_graph(7, 9, 0), 3, 0).tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_the_shuffle_depends_on_the_seed():
    graph = random_graph(100, 300, 0)
    assert not np.array_equal(shuffled(graph, 4, 0), shuffled(graph, 4, 1))


def literal_loads(graph, assignment, workers):
    boundary = boundary_of(graph, assignment)
    sends, receives = set(boundary.source.tolist()), set(boundary.destination.tolist())
    loads = [0] * workers
    for v, worker in enumerate(assignment):
        loads[worker] += (v in sends) + (v in receives)
    return loads


@STEADY
@given(graphs(), st.integers(1, 5))
def test_loads(graph, workers):
    assignment = (np.arange(graph.vertices) % workers).astype(np.int32)
    ours = boundary_loads(graph, assignment, workers).tolist()
    assert ours == literal_loads(graph, assignment.tolist(), workers)


def uneven():
    """A dense half in which everybody is at the boundary, and a ring."""
    rng = np.random.default_rng(3)
    dense = rng.integers(0, 500, (2, 4000))
    ring = np.arange(500, 1500)
    u = np.concatenate([dense[0], ring])
    v = np.concatenate([dense[1], np.roll(ring, 1)])
    return graph_from_edges(u, v, name="uneven", vertices=1500, directed=False)


def test_the_largest_load_falls():
    graph, workers = uneven(), 8
    before = boundary_loads(graph, partition_workers(graph, workers, 0), workers)
    after = boundary_loads(graph, balanced_boundary(graph, workers, 0), workers)
    assert after.max() < 0.8 * before.max()
    assert after.sum() <= partition_boundary.MOST_BOUNDARY * before.sum()


@pytest.mark.parametrize("later", ["random", "no better"])
def test_a_run_that_does_not_help_is_not_taken(monkeypatch, later):
    """The first run is what comes out, whether the others have more or the same loads."""
    graph = uneven()
    first = partition_workers(graph, 8, 0)
    rng = np.random.default_rng(0)

    def poor(source, destination, *, vertices, parts, seed, weights):
        if weights is None:
            return first
        if later == "random":
            return rng.integers(0, parts, vertices).astype(np.int32)
        return (first + 1) % 8

    monkeypatch.setattr(partition_boundary, "partition_vertices", poor)
    assert np.array_equal(balanced_boundary(graph, 8, 0), first)


@pytest.mark.parametrize("suffix", [".npy", ".txt", ".part.3"])
def test_an_assignment_from_a_file(tmp_path, suffix):
    graph = random_graph(20, 60, 0)
    wanted = np.arange(20) % 3
    path = tmp_path / f"mine{suffix}"
    if suffix == ".npy":
        np.save(path, wanted.astype(np.uint8))
    else:
        path.write_text("# a comment\n" + "\n".join(map(str, wanted)) + "\n")
    plan = build_plan(graph, workers=3, slots=8, program="00", assignment=load_assignment(path))
    assert plan.assignment.tolist() == wanted.tolist()
    assert plan.manifest.partition.method == "given"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"0\n1\nx\n"),
        ("a.txt", b"0.5\n1\n"),
        ("a.txt", b"0 1\n1 0\n"),
        ("a.npy", b"no array"),
        ("a.npy", b""),
    ],
)
def test_files_that_hold_something_else(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with reports("one whole number per vertex"):
        load_assignment(path)


def test_a_file_that_is_not_there(tmp_path):
    with reports("cannot be read"):
        load_assignment(tmp_path / "missing.txt")


def test_an_array_of_floats(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(PlannerError):
        load_assignment(tmp_path / "a.npy")
