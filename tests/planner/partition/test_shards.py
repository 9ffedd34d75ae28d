# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from switchgnn.planner import load_graph
from switchgnn.planner.partition.shards import read_shard, shard_file, write_shards
from tests.planner.helpers import STEADY, graphs, random_graph, reports, tuples


def pairs_of(graph):
    """The undirected edges without self-loops, both ways, as a set of Python's."""
    u, v = (ends.tolist() for ends in graph.edges())
    return {(a, b) for a, b in zip(u, v, strict=True)} | {(b, a) for a, b in zip(u, v, strict=True)}


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


@STEADY
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


@pytest.mark.parametrize("directed", [False, True])
def test_the_comparison_notices_a_lost_edge(tmp_path, directed):
    graph = random_graph(60, 200, 1, directed=directed)
    write_shards(graph, 3, tmp_path / "shards")
    change(tmp_path / "shards", 1, lose_last)
    assert len(joined(tmp_path / "shards", 3)) == len(pairs_of(graph)) - 1


def test_shards_are_about_even():
    graph = random_graph(3000, 30_000, 0)
    sizes = sizes_of(graph, 4)
    assert max(sizes) <= 1.02 * sum(sizes) / 4


def test_a_hub_does_not_leave_a_rank_without_vertices():
    star = random_graph(2, 1, 0)
    assert len(sizes_of(star, 2)) == 2


def sizes_of(graph, ranks):
    with TemporaryDirectory() as temporary:
        write_shards(graph, ranks, temporary)
        shards = [read_shard(temporary, rank) for rank in range(ranks)]
    assert all(len(shard.indptr) >= 2 for shard in shards)
    return [len(shard.indptr) - 1 + len(shard.indices) for shard in shards]


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


@pytest.mark.parametrize("ranks", [0, 35])
def test_impossible_numbers_of_ranks(tmp_path, ranks):
    with reports("from 1 to 34"):
        write_shards(load_graph("karate"), ranks, tmp_path / "shards")


def test_a_file_is_no_folder_for_shards(tmp_path):
    (tmp_path / "shards").write_text("")
    with reports("is a file"):
        write_shards(load_graph("karate"), 2, tmp_path / "shards")


def change(folder, rank, edit):
    path = folder / shard_file(rank)
    arrays = load_file(path)
    edit(arrays)
    save_file(arrays, path)


def lose_last(arrays):
    arrays["indices"] = arrays["indices"][:-1]
    arrays["indptr"] = np.minimum(arrays["indptr"], len(arrays["indices"]))


def out_of_range(arrays):
    arrays["indices"][0] = 34


def negative(arrays):
    arrays["indices"][0] = -1


def falling(arrays):
    arrays["indptr"][1] = 10**6


def short(arrays):
    arrays["indptr"] = arrays["indptr"][:-1]


def strange(arrays):
    arrays["indices"] = arrays["indices"].astype(np.float32)


def without_starts(arrays):
    arrays["starts"] = np.array([0, 0, 34])


@pytest.mark.parametrize("edit", [out_of_range, negative, falling, short, strange, without_starts])
def test_damaged_shards_are_refused_before_a_c_library_sees_them(tmp_path, edit):
    write_shards(load_graph("karate"), 2, tmp_path)
    change(tmp_path, 0, edit)
    with reports(shard_file(0)):
        read_shard(tmp_path, 0)


def test_a_shard_of_another_rank_is_refused(tmp_path):
    write_shards(load_graph("karate"), 2, tmp_path)
    (tmp_path / shard_file(1)).rename(tmp_path / shard_file(7))
    with reports("one of 2 shards"):
        read_shard(tmp_path, 7)


def test_something_else_is_no_shard(tmp_path):
    (tmp_path / shard_file(0)).write_text("0 1\n")
    with reports("is not a shard"):
        read_shard(tmp_path, 0)
