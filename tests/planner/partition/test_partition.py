"""Partitions by METIS and by simple rules, and files."""

import ctypes
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pymetis
import pytest
from hypothesis import strategies as st

from switchgnn.planner import PARTITION_STRATEGIES, build_plan, load_assignment, partition_workers
from switchgnn.planner.partition import metis
from switchgnn.planner.partition import simple as partition_boundary
from switchgnn.planner.partition.g3 import g3
from switchgnn.planner.partition.metis import partition_vertices
from switchgnn.planner.partition.simple import balanced_boundary, boundary_loads, chunk, shuffled
from switchgnn.planner.partition.workers import check_assignment
from tests.planner import helpers
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

METIS_VOLUME = PARTITION_STRATEGIES["metis-volume"]


@pytest.mark.parametrize(
    "strategy", [partition_workers, METIS_VOLUME, shuffled, chunk, balanced_boundary, g3]
)
def test_every_worker_gets_a_vertex(strategy):
    @helpers.given(helpers.graphs(), st.integers(1, 9), st.integers(0, 3))
    def holds(graph, workers, seed):
        helpers.check_everybody_has_a_vertex(strategy, graph, workers, seed)

    holds()


def test_chunks_and_shuffles_have_equal_shares():
    assert chunk(helpers.random_graph(7, 9, 0), 3, 0).tolist() == [0, 0, 0, 1, 1, 2, 2]
    graph = helpers.random_graph(1003, 3000, 0)
    shares = np.bincount(shuffled(graph, 16, 0))
    assert shares.max() - shares.min() <= 1
    assert not np.array_equal(shuffled(graph, 4, 0), shuffled(graph, 4, 1))


def literal_loads(graph, assignment, workers):
    boundary = helpers.boundary_of(graph, assignment)
    sends, receives = set(boundary.source.tolist()), set(boundary.destination.tolist())
    loads = [0] * workers
    for v, worker in enumerate(assignment):
        loads[worker] += (v in sends) + (v in receives)
    return loads


@helpers.given(helpers.graphs(), st.integers(1, 5))
def test_loads(graph, workers):
    assignment = (np.arange(graph.vertices) % workers).astype(np.int32)
    ours = boundary_loads(graph, assignment, workers).tolist()
    assert ours == literal_loads(graph, assignment.tolist(), workers)


def uneven():
    """A dense half in which everybody is at the boundary, and a ring."""
    dense = np.random.default_rng(3).integers(0, 500, (2, 4000))
    ring = np.arange(500, 1500)
    return helpers.graph_of(*np.concatenate([dense, [ring, np.roll(ring, 1)]], axis=1), 1500)


def test_the_largest_load_falls():
    graph, workers = uneven(), 8
    before = boundary_loads(graph, partition_workers(graph, workers, 0), workers)
    after = boundary_loads(graph, balanced_boundary(graph, workers, 0), workers)
    assert after.max() < 0.8 * before.max()
    assert after.sum() <= partition_boundary.MOST_BOUNDARY * before.sum()


def test_a_run_that_does_not_help_is_not_taken(monkeypatch):
    """The first run is what comes out if the others have the same loads."""
    graph = uneven()
    first = partition_workers(graph, 8, 0)

    def poor(source, destination, *, vertices, parts, seed, weights):
        return first if weights is None else (first + 1) % 8

    monkeypatch.setattr(partition_boundary, "partition_vertices", poor)
    assert np.array_equal(balanced_boundary(graph, 8, 0), first)


@pytest.mark.parametrize("suffix", [".npy", ".npy.gz", ".txt", ".part.3"])
def test_an_assignment_from_a_file(tmp_path, suffix):
    graph = helpers.random_graph(20, 60, 0)
    wanted = np.arange(20) % 3
    path = tmp_path / f"mine{suffix}"
    if suffix == ".npy":
        np.save(path, wanted.astype(np.uint8))
    elif suffix == ".npy.gz":
        with gzip.open(path, "wb") as packed:
            np.save(packed, wanted.astype(np.uint8))
    else:
        path.write_text("# a comment\n" + "\n".join(map(str, wanted)) + "\n")
    plan = build_plan(graph, workers=3, slots=8, program="00", assignment=load_assignment(path))
    assert plan.assignment.tolist() == wanted.tolist()
    assert plan.manifest.partition.method == "given"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("a.txt", content) for content in (b"0\n1\nx\n", b"0.5\n1\n", b"0 1\n1 0\n")),
        *(("a.npy", content) for content in (b"no array", b"")),
    ],
)
def test_files_that_hold_something_else(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with helpers.reports("one whole number per vertex"):
        load_assignment(tmp_path / name)
    np.save(tmp_path / "floats.npy", np.zeros(3))
    with helpers.reports():
        load_assignment(tmp_path / "floats.npy")
    with helpers.reports("cannot be read"):
        load_assignment(tmp_path / "missing.txt")


@pytest.mark.parametrize(
    ("workers", "part"), [(0, "not possible"), (129, "not possible"), (11, "too many")]
)
def test_impossible_numbers_of_workers(workers, part):
    with helpers.reports(part):
        partition_workers(helpers.graph_of([0], [1], 10), workers, 0)


def test_bad_assignments():
    for assignment, part in (
        ([0, 1, 0], "4 whole numbers"),
        ([0, 1, 0, 2], "outside"),
        ([0, 1, 0, -1], "outside"),
        ([0, 0, 0, 0], "no vertex to worker 1"),
        ([0.0, 1.0, 0.0, 1.0], "whole numbers"),
    ):
        with helpers.reports(part):
            check_assignment(helpers.graph_of([0], [1], 4), 2, np.array(assignment))


def test_boundary_edges():
    #  worker 0: 0 1   worker 1: 2 3   worker 2: 4
    graph = helpers.graph_of([0, 0, 0, 1, 2, 4], [1, 2, 3, 2, 4, 0], 5, directed=True)
    boundary = helpers.boundary_of(graph, [0, 0, 1, 1, 2])
    edges = list(helpers.tuples(boundary.source, boundary.destination))
    assert edges == [(0, 2), (0, 3), (1, 2), (2, 4), (4, 0)]
    assert boundary.source_worker.tolist() == [0, 0, 0, 1, 2]
    assert boundary.destination_worker.tolist() == [1, 1, 1, 2, 0]
    assert boundary.vertices().tolist() == [0, 1, 2, 3, 4]
    assert boundary.max_fan_in() == 2
    assert boundary.host_copies()[0].size == 4
    assert len(helpers.boundary_of(graph, [0] * 5)) == 0
    assert helpers.boundary_of(graph, [0] * 5).max_fan_in() == 1


GRAPH = helpers.random_graph(300, 2000, 1)


def cut():
    partition_vertices(*GRAPH.edges(), vertices=GRAPH.vertices, parts=4, seed=0)


def test_calls_that_fail_are_reported(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("METIS ran out of memory")

    monkeypatch.setattr(metis, "_MOST_ENDS", len(GRAPH.indices))
    cut()
    monkeypatch.setattr(pymetis, "part_graph", fail)
    with helpers.reports("out of memory"):
        cut()
    monkeypatch.setattr(metis, "_MOST_ENDS", len(GRAPH.indices) - 1)
    with helpers.reports("too many for METIS"):
        cut()


PROGRAM = """
import os, signal, sys
from switchgnn.planner.partition.metis import partition_vertices
import numpy as np

def end(*_):
    sys.exit(7)

signal.signal(signal.SIGTERM, end)
ring = np.arange(100)
partition_vertices(ring, (ring + 1) % 100, vertices=100, parts=4, seed=0)
print("reading", flush=True)
os.read(0, 1)
"""


@pytest.mark.whole
def test_a_signal_interrupts_a_wait_after_metis():
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout.readline() == b"reading\n"
            # The second word: the first argument of the system call that it waits in, here a file.
            waits_in = Path(f"/proc/{process.pid}/syscall")
            wait_until(lambda: waits_in.read_text().split()[1:2] == ["0x0"])
            process.send_signal(signal.SIGTERM)
            assert process.wait(seconds_here(5)) == 7
        finally:
            process.kill()


def test_metis_prints_nothing(capfd):
    """Of itself it prints that it cannot bisect nothing; what others print is not lost."""
    heavy = {"vertices": 8, "parts": 7, "seed": 0, "weights": np.array([100, *[1] * 7])}
    os.write(1, b"before ")
    partition_vertices(np.zeros(7, int), np.arange(1, 8), **heavy)
    os.write(1, b"after")
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == "before after"
