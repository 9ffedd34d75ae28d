"""Partitions by PT-Scotch, in ranks of MPI on this machine."""

import importlib.util
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from switchgnn.planner import load_assignment, load_graph, partition_workers
from switchgnn.planner.partition import ptscotch as module
from switchgnn.planner.partition.ptscotch import (
    RANK_PROGRAM,
    load_ptscotch,
    ptscotch,
    ptscotch_missing,
    read_shard,
    run_ranks,
    shard_file,
    why_failed,
    write_shards,
)
from switchgnn.planner.partition.workers import MOST_SHARE
from tests.planner.helpers import given, graph_of, graphs, plan_of, random_graph, reports, tuples
from tests.support.markers import full
from tests.support.processes import run_program
from tests.support.speed import Deadline, seconds_here
from tests.support.waiting import wait_until

MISSING = ptscotch_missing()
needs_ptscotch = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
PATIENCE = 60.0


def rank_of(shards, out, *options):
    """The command of a rank."""
    program = [sys.executable, "-m", RANK_PROGRAM, "shard"]
    return [*program, str(shards), "--assign", str(out), *options]


def communities(count, size, *, inside, outside, seed=0):
    """Dense communities with few edges between; ids say nothing about them."""
    rng = np.random.default_rng(seed)
    home = rng.permutation(np.repeat(np.arange(count), size))
    members = [np.flatnonzero(home == each) for each in range(count)]
    u = np.concatenate([rng.choice(each, inside) for each in members])
    v = np.concatenate([rng.choice(each, inside) for each in members])
    far = rng.integers(0, count * size, (2, outside))
    return graph_of(np.append(u, far[0]), np.append(v, far[1]), count * size)


def cut_of(graph, assignment):
    u, v = graph.edges()
    return int((assignment[u] != assignment[v]).sum())


def check_partition(graph, assignment, workers):
    """The oracle: what a partition must be, by counting alone."""
    assert assignment.shape == (graph.vertices,)
    shares = np.bincount(assignment, minlength=workers)
    assert len(shares) == workers
    assert shares.min() >= 1
    assert shares.max() <= math.ceil(MOST_SHARE * graph.vertices / workers)
    rng = np.random.default_rng(0)
    by_chance = cut_of(graph, rng.permutation(graph.vertices) % workers)
    cut = cut_of(graph, assignment)
    assert cut <= 1.5 * cut_of(graph, partition_workers(graph, workers, 0))
    assert cut <= 0.5 * by_chance


GRAPH = communities(8, 150, inside=1200, outside=600)


@needs_ptscotch
@pytest.mark.parametrize(
    ("workers", "ranks"), [(8, 2), pytest.param(3, 4, marks=full), pytest.param(8, 1, marks=full)]
)
def test_few_edges_are_cut_and_shares_are_even(workers, ranks):
    check_partition(GRAPH, ptscotch(GRAPH, workers, 0, ranks=ranks), workers)


@needs_ptscotch
def test_a_plan_names_it_with_its_ranks():
    graph = random_graph(300, 1500, 3, directed=True)
    plan = plan_of(graph, slots=40, partition="ptscotch:2", seed=1)
    assert plan.manifest.partition.method == "ptscotch:2"
    assert np.array_equal(plan.assignment, ptscotch(graph, 4, 1, ranks=2))
    assert not np.array_equal(plan.assignment, ptscotch(graph, 4, 2, ranks=2))


@needs_ptscotch
def test_each_rank_needs_its_own_shard_only(tmp_path):
    """As on several machines: each rank sees a folder with nothing but its shard."""
    write_shards(GRAPH, 2, tmp_path / "all")
    for rank in range(2):
        (tmp_path / f"machine{rank}").mkdir()
        shutil.copy(tmp_path / "all" / shard_file(rank), tmp_path / f"machine{rank}")
    run_ranks(2, rank_on_its_machine(tmp_path, workers=8, seed=3))
    there = load_assignment(tmp_path / "out.npy")
    assert np.array_equal(there, ptscotch(GRAPH, 8, 3, ranks=2))


@needs_ptscotch
def test_shards_of_different_graphs_are_noticed(tmp_path):
    for rank, graph in enumerate([GRAPH, random_graph(GRAPH.vertices, 4000, 0)]):
        write_shards(graph, 2, tmp_path / f"machine{rank}")
    with reports("not of the same graph"):
        run_ranks(2, rank_on_its_machine(tmp_path, workers=8, seed=3))
    assert not (tmp_path / "out.npy").exists()


def rank_on_its_machine(folder, *, workers, seed):
    words = rank_of(f"{folder}/machine$OMPI_COMM_WORLD_RANK", folder / "out.npy")
    return ["bash", "-c", f"exec {' '.join(words)} --workers {workers} --seed {seed}"]


@needs_ptscotch
@pytest.mark.parametrize(
    ("ranks", "options", "part"),
    [
        (3, ["--workers", "4"], "There are 2 shards, but mpirun started 3 ranks"),
        (2, ["--workers", "129"], "129 workers are not possible"),
        pytest.param(2, ["--workers", "4", "--seed", "-1"], "must not be negative", marks=full),
        pytest.param(2, ["--workers", "4"], "Cannot write", marks=full),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(tmp_path, ranks, options, part):
    write_shards(GRAPH, 2, tmp_path / "shards")
    out = tmp_path / ("none/out.npy" if part == "Cannot write" else "out.npy")
    command = rank_of(tmp_path / "shards", out)
    with reports(part):
        run_ranks(ranks, [*command, *options])
    assert not out.exists()


OTHER_MPI = """
import sys
from pathlib import Path
from switchgnn.planner.partition import ptscotch
ptscotch.PTScotch.mpi_version = lambda self: "MPICH Version: 4.0, of 2022"
ptscotch.partition_shards(*map(Path, sys.argv[1:]), workers=4, seed=0)
"""


@needs_ptscotch
def test_two_kinds_of_mpi_are_noticed(tmp_path):
    write_shards(GRAPH, 1, tmp_path / "shards")
    out = str(tmp_path / "out.npy")
    command = [sys.executable, "-c", OTHER_MPI, str(tmp_path / "shards"), out]
    with reports("mpi4py uses Open MPI", "PT-Scotch MPICH Version: 4.0:"):
        run_ranks(1, command)


WIDE = [*Path("/usr/lib").glob("*/scotch-int64")]


@needs_ptscotch
@pytest.mark.skipif(not WIDE, reason="Debian's PT-Scotch of 64 bits is not installed")
def test_very_many_edges_are_counted_with_64_bits(tmp_path):
    """The shards claim to be of a graph that 32 bits cannot count."""
    assert width_for(1) == 4
    assert width_for(2**31) == 8
    write_shards(GRAPH, 2, tmp_path / "shards")
    for rank in range(2):
        path = tmp_path / "shards" / shard_file(rank)
        save_file({**load_file(path), "edges": np.array([2**33])}, path)
    out = tmp_path / "out.npy"
    command = rank_of(tmp_path / "shards", out)
    run_ranks(2, [*command, "--workers", "8"])
    check_partition(GRAPH, load_assignment(out), 8)


def width_for(edges):
    """In a process of its own: a process can load one of both widths."""
    program = "from switchgnn.planner.partition.ptscotch import load_ptscotch as load; print(load("
    result = run_program([sys.executable, "-c", f"{program}{edges}).number.itemsize)"], check=True)
    return int(result.stdout)


PLAN = "-m switchgnn.commands plan random:5000:50000:1 --workers 16 --partition ptscotch:2"


def ranks_of(folder, process):
    """The ranks whose shards are in the folder; only they name it."""
    deadline = Deadline(PATIENCE)
    while not deadline.is_over():
        found = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdecimal() and is_rank(entry, folder)
        ]
        if len(found) == 2:
            return found
        assert process.poll() is None, process.stderr.read()
    pytest.fail("no ranks were started")


def is_rank(entry, folder):
    try:
        words = (entry / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return (
        Path(os.fsdecode(words[0])).name.startswith("python")
        and RANK_PROGRAM.encode() in words
        and any(word.startswith(os.fsencode(folder)) for word in words)
    )


@needs_ptscotch
def test_an_interrupted_plan_leaves_nothing(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, *PLAN.split(), "--out", str(tmp_path / "plan")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    with process:
        ranks = ranks_of(temporary, process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=seconds_here(PATIENCE))
    assert process.returncode not in {0, None}
    assert "Traceback" not in said
    wait_until(
        lambda: not any(is_rank(Path("/proc") / str(pid), temporary) for pid in ranks),
        "the end of all ranks",
        PATIENCE,
    )
    assert not (tmp_path / "plan").exists()
    assert [path.name for path in temporary.iterdir() if "switchgnn" in path.name] == []


@pytest.mark.parametrize(
    ("hide", "part"),
    [
        (lambda patch: patch.setattr(shutil, "which", lambda _: None), "openmpi-bin"),
        (lambda patch: patch.setattr(importlib.util, "find_spec", lambda _: None), "mpi4py"),
        (
            lambda patch: patch.setattr(module, "_ENDINGS", ("-0.so",)),
            "apt-get install libptscotch-7.0",
        ),
    ],
    ids=["mpirun", "mpi4py", "libptscotch"],
)
def test_what_is_missing_is_named(monkeypatch, hide, part):
    if part != "openmpi-bin":
        monkeypatch.setattr(shutil, "which", lambda _: "mpirun")
    if part.startswith("apt-get"):
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: "mpi4py")
    hide(monkeypatch)
    with reports(part):
        ptscotch(load_graph("karate"), 2, 0, ranks=2)


@needs_ptscotch
def test_a_library_that_counts_too_little_is_refused(monkeypatch):
    monkeypatch.setattr(module, "_LIBRARY_FOLDER", Path("/nonexistent"))
    with reports("counts with 32 bits"):
        load_ptscotch(2**40)


ABORT = """\
[1,1]<stderr>:first words
[1,1]<stderr>:Zero[1,1]<stderr>:Division[1,1]<stderr>:Error
---------------------------------------------
MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD
[1,0]<stderr>:something of another rank that came later
"""
SLOTS = """\
---------------------------------------------
There are not enough slots available
in the system.

Either request fewer slots for your application.
"""


@pytest.mark.parametrize(
    ("said", "code", "sentence"),
    [
        (ABORT, 2, "rank 1: ZeroDivisionError"),
        (ABORT, 137, "a rank was ended by signal 9 (Killed)"),
        (SLOTS, 1, "There are not enough slots available"),
        ("", 7, "mpirun ended with code 7"),
        ("", -15, "mpirun was ended by signal 15 (Terminated)"),
    ],
)
def test_what_open_mpi_says_becomes_a_sentence(said, code, sentence):
    assert why_failed(said, code) == sentence


def pairs_of(graph):
    """The undirected edges without self-loops, both ways, as a set of Python's."""
    edges = set(tuples(*graph.edges()))
    return edges | {(v, u) for u, v in edges}


def joined(folder, ranks):
    """The edges of all shards, row by row; each shard may hold its own rows only."""
    found = []
    for rank in range(ranks):
        shard = read_shard(folder, rank)
        first, last = shard.starts[rank], shard.starts[rank + 1]
        assert len(shard.indptr) == last - first + 1
        rows = np.repeat(np.arange(first, last), np.diff(shard.indptr))
        found += tuples(rows, shard.indices)
    return found


@given(graphs(), st.integers(1, 6))
def test_shards_joined_are_the_undirected_graph(tmp_path_factory, graph, ranks):
    ranks = min(ranks, graph.vertices)
    folder = tmp_path_factory.mktemp("shards") / "of"
    write_shards(graph, ranks, folder)
    found = joined(folder, ranks)
    assert len(found) == len(set(found))
    assert set(found) == pairs_of(graph)
    assert {path.name for path in folder.iterdir()} == {shard_file(rank) for rank in range(ranks)}
    for rank in range(ranks):
        shard = read_shard(folder, rank)
        assert (shard.ranks, shard.vertices, shard.edges) == (ranks, graph.vertices, len(found))
        assert shard.graph == graph.digest()
        assert np.all(np.diff(shard.starts) >= 1)


def test_shards_are_about_even(tmp_path):
    write_shards(random_graph(3000, 30_000, 0), 4, tmp_path)
    shards = [read_shard(tmp_path, rank) for rank in range(4)]
    sizes = [len(shard.indptr) - 1 + len(shard.indices) for shard in shards]
    assert max(sizes) <= 1.02 * sum(sizes) / 4


def test_a_rank_reads_its_own_file_only(tmp_path):
    write_shards(load_graph("karate"), 3, tmp_path / "shards")
    whole = read_shard(tmp_path / "shards", 1)
    for rank in (0, 2):
        (tmp_path / "shards" / shard_file(rank)).unlink()
    again = read_shard(tmp_path / "shards", 1)
    assert np.array_equal(whole.indices, again.indices)
    with reports("switchgnn shard"):
        read_shard(tmp_path / "shards", 0)


def test_older_shards_are_replaced_and_other_files_are_not(tmp_path):
    folder = tmp_path / "shards"
    write_shards(load_graph("karate"), 4, folder)
    write_shards(load_graph("karate"), 2, folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "shard-000.safetensors",
        "shard-001.safetensors",
    ]
    (folder / "thesis.txt").write_text("years of work")
    with reports("thesis.txt"):
        write_shards(load_graph("karate"), 2, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


def test_impossible_numbers_of_ranks_and_folders(tmp_path):
    for ranks in (0, 35):
        with reports("from 1 to 34"):
            write_shards(load_graph("karate"), ranks, tmp_path / "shards")
    (tmp_path / "shards").write_text("")
    with reports("is a file"):
        write_shards(load_graph("karate"), 2, tmp_path / "shards")


def change(folder, rank, edit):
    path = folder / shard_file(rank)
    arrays = load_file(path)
    edit(arrays)
    save_file(arrays, path)


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("indices", lambda array: np.append(34, array[1:])),
        ("indices", lambda array: np.append(-1, array[1:])),
        ("indices", lambda array: array.astype(np.float32)),
        ("indptr", lambda array: np.insert(array[:-1], 1, 10**6)),
        ("indptr", lambda array: array[:-1]),
        ("starts", lambda array: np.array([0, 0, 34])),
    ],
)
def test_damaged_shards_are_refused_before_a_c_library_sees_them(tmp_path, name, damaged):
    write_shards(load_graph("karate"), 2, tmp_path)
    change(tmp_path, 0, lambda arrays: arrays.update({name: damaged(arrays[name])}))
    with reports(shard_file(0)):
        read_shard(tmp_path, 0)


def test_files_that_are_not_the_shard_are_refused(tmp_path):
    write_shards(load_graph("karate"), 2, tmp_path)
    (tmp_path / shard_file(1)).rename(tmp_path / shard_file(7))
    with reports("one of 2 shards"):
        read_shard(tmp_path, 7)
    (tmp_path / shard_file(0)).write_text("0 1\n")
    with reports("is not a shard"):
        read_shard(tmp_path, 0)
