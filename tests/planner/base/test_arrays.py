"""Counting sorts, pairs and samples against NumPy; compiled and interpreted code agree."""

import errno
import os
import pwd
import stat
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.base.files import whole_file
from switchgnn.planner.base import arrays as compiled
from switchgnn.planner.costs.report import simulate_pool
from switchgnn.planner.partition.g3 import g3
from tests.planner.helpers import boundary_of, given, graphs, plan_of, random_graph, tuples

KEYS = st.lists(st.integers(0, 6), max_size=40)


@given(KEYS)
def test_a_counting_sort_is_a_stable_sort(keys):
    key = np.array(keys, dtype=np.int32)
    indptr, order = compiled.sort_by_key(key, 7)
    assert order.tolist() == np.argsort(key, kind="stable").tolist()
    assert indptr.tolist() == [sum(k < row for k in keys) for row in range(8)]


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=40))
def test_several_keys_sort_as_lexsort_does(rows):
    keys = np.array(rows, dtype=np.int32).T
    assert compiled.sort_by_keys(*keys).tolist() == np.lexsort(keys).tolist()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_pairs_are_those_of_a_set(pairs):
    one, other = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    expected = sorted(set(pairs))
    (first, second), number = compiled.number_pairs(one, other)
    assert list(tuples(first, second)) == expected
    assert [expected[n] for n in number.tolist()] == pairs
    assert [each.tolist() for each in compiled.distinct_pairs(one, other)] == [
        first.tolist(),
        second.tolist(),
    ]


@given(graphs())
def test_symmetry_is_that_of_the_edges(graph):
    edges = set(zip(*(ends.tolist() for ends in graph.edges()), strict=True))
    assert compiled.is_symmetric(graph.indptr, graph.indices) == all(
        (v, u) in edges for u, v in edges
    )


@given(graphs())
def test_symmetric_rows_hold_each_edge_both_ways(graph):
    source, destination = graph.edges()
    edges = set(tuples(source, destination))
    both = sorted(edges | {(v, u) for u, v in edges})
    indptr, indices = compiled.symmetric_rows(source, destination, graph.vertices)
    assert list(tuples(np.repeat(np.arange(graph.vertices), np.diff(indptr)), indices)) == both


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        *((rows, None) for rows in ([[1, 2], [0], []], [[], [], []])),
        ([[1, 2], [0, 1], []], ("loop", 1)),
        *((rows, ("order", 1)) for rows in ([[1], [2, 0], []], [[1], [0, 0], [2]])),
    ],
)
def test_strange_rows_are_found(rows, found):
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([v for row in rows for v in row], dtype=np.int32)
    assert compiled.strange_row(indptr, indices) == found


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_sample_keeps_both_directions_of_its_share(share):
    graph = random_graph(300, 9000, 5)
    indptr, indices = compiled.thin(graph.indptr, graph.indices, share)
    assert compiled.is_symmetric(indptr, indices)
    assert compiled.strange_row(indptr, indices) is None
    assert abs(len(indices) / len(graph.indices) - share) < 0.03
    for row in range(graph.vertices):
        mine = set(indices[indptr[row] : indptr[row + 1]].tolist())
        assert mine <= set(graph.indices[graph.indptr[row] : graph.indptr[row + 1]].tolist())
    # No vertex loses all or keeps all: the hash does not look at one end only.
    if share == 0.25:
        degree = np.diff(indptr) / np.maximum(np.diff(graph.indptr), 1)
        assert degree.std() < 0.1


@compiled.Compiled
def add_up(numbers):
    """What it says."""
    total = 0
    for number in numbers:
        total += number
    return total


def test_small_arrays_are_left_to_python(monkeypatch):
    monkeypatch.setattr(compiled, "_FEW", 100)
    assert add_up(np.arange(100)) == 4950
    assert "machine" not in vars(add_up)
    assert add_up(np.arange(101)) == 5050
    assert "machine" in vars(add_up)
    assert add_up.__doc__ == "What it says."


def test_a_cache_that_cannot_be_written_does_not_matter(monkeypatch):
    def njit(function=None, **options):
        if options:
            raise RuntimeError("no locator available")
        return function

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled.Compiled(add_up.interpreted).machine(np.arange(4)) == 6


def test_without_a_home_there_is_no_cache(monkeypatch):
    """Numba would make one in a folder called ~ in the current one."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", dict[int, object]().__getitem__)
    machine = compiled.Compiled(add_up.interpreted).machine
    assert not machine.stats.cache_path
    assert machine(np.arange(4)) == 6


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_cache_that_others_may_write_to_is_not_read(monkeypatch, tmp_path, mode):
    """Numba keeps pickles and machine code there, and would run what it finds."""
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))
    folder = Path(compiled.Compiled(add_up.interpreted).machine.stats.cache_path)
    assert folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o022 == 0
    folder.chmod(mode)
    again = compiled.Compiled(add_up.interpreted).machine
    assert bool(again.stats.cache_path) == (mode == 0o700)
    assert again(np.arange(4)) == 6


GRAPH = random_graph(60, 300, 3, directed=True)


def digest_of(**options):
    def plan():
        return plan_of(GRAPH, 5, 24, directions="both", **options).manifest.digest

    return plan


def pool():
    return simulate_pool(boundary_of(GRAPH, np.arange(60) % 4), 20, 4, 1).down.tolist()


@pytest.mark.whole
@pytest.mark.parametrize(
    "make",
    [
        digest_of(blocks="mlgp", order="gamr"),
        digest_of(blocks="destination", order="bfs"),
        digest_of(blocks="destination-cover", send="cover", weight=0.2, order="random"),
        pool,
        lambda: g3(GRAPH, 6, 1).tolist(),
        lambda: list(compiled.thin(GRAPH.indptr, GRAPH.indices, 0.25)[1]),
    ],
    ids=["gamr", "bfs", "weight", "pool", "g3", "thin"],
)
def test_compiled_and_interpreted_code_agree(monkeypatch, make):
    monkeypatch.setattr(compiled, "_FEW", 1 << 60)
    interpreted = make()
    monkeypatch.setattr(compiled, "_FEW", -1)
    assert make() == interpreted


def test_a_whole_file_takes_the_place_of_another_at_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with whole_file(path) as file, whole_file(path) as other:
        file.write(b"new" * 1000)
        file.flush()
        other.write(b"other")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" * 1000
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("step", ["write", "fsync"])
def test_after_an_error_the_old_file_stays(tmp_path, monkeypatch, step):
    """Some disks over the network report only at the end that they are full."""

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "file"
    path.write_bytes(b"old")
    if step == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), whole_file(path) as file:
        file.write(b"half of")
        if step == "write":
            full(file)
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
