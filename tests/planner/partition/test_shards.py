# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from switchgnn.planner import load_graph
from switchgnn.planner.partition.shards import read_shard, shard_file, write_shards
from tests.planner.helpers import given, graphs, random_graph, reports, tuples


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
