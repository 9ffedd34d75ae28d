# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs as arrays, and from files and names."""

import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse

from switchgnn.base.arrays import UnpackLimit
from switchgnn.planner import Graph, PlannerError, graph_from_edges, load_graph
from switchgnn.planner.graphs import bundled as load_bundled
from switchgnn.planner.graphs.npz_file import load_npz
from tests.planner.helpers import given, graphs, one_sentence, random_graph, reports, tuples


def write(tmp_path, text, name="g.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def pairs(graph):
    u, v = graph.edges()
    return list(tuples(u, v))


def refused(spec, **options):
    with pytest.raises(PlannerError) as error:
        load_graph(spec, **options)
    return one_sentence(error)


def test_digits_and_karate():
    karate = load_graph("karate")
    assert (karate.vertices, len(karate.indices)) == (34, 156)
    assert np.bincount(karate.labels).tolist() == [17, 17]
    graph = load_graph("digits")
    assert graph.vertices == 1797
    assert graph.features.shape == (1797, 64)
    assert (graph.features.min(), graph.features.max()) == (0, 1)
    assert sorted(set(graph.labels.tolist())) == list(range(10))
    assert np.diff(graph.indptr).min() >= 8
    u, v = graph.edges()
    assert set(tuples(u, v)) == set(tuples(v, u))
    # Neighbours in a nearest-neighbour graph mostly show the same digit.
    assert (graph.labels[u] == graph.labels[v]).mean() > 0.9


@pytest.mark.whole
def test_digits_with_more_neighbours():
    graph, more = load_graph("digits"), load_graph("digits:80")
    assert (more.name, more.vertices) == ("digits:80", graph.vertices)
    assert np.diff(more.indptr).min() >= 80
    assert np.array_equal(more.features, graph.features)
    # The nearest are among them.
    ends = set(zip(*(each.tolist() for each in more.edges()), strict=True))
    assert set(zip(*(each.tolist() for each in graph.edges()), strict=True)) < ends
    assert load_graph("digits:8").digest() == graph.digest()


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        *(
            (f"digits{end}", "write digits:NEIGHBOURS, from 1 to 1796")
            for end in (":", ":0", ":1797", ":²", ":8:1")
        ),
        *((f"random:{end}",) * 2 for end in ("40:100", "a:1:1", "3:4:1", "0:0:1")),
    ],
)
def test_no_such_graph(spec, part):
    assert part in refused(spec)


@pytest.mark.whole
def test_digits_without_the_file_of_scikit_learn(monkeypatch):
    expected = load_graph("digits")
    monkeypatch.setattr(load_bundled, "find_spec", lambda _: None)
    graph = load_graph("digits")
    assert graph.digest() == expected.digest()
    assert np.array_equal(graph.features, expected.features)
    assert np.array_equal(graph.labels, expected.labels)


def test_a_random_graph_is_what_its_name_says():
    graph = load_graph("random:40:100:7")
    assert (graph.vertices, len(graph.indices)) == (40, 200)
    assert graph.digest() == load_graph("random:40:100:7").digest()
    assert graph.digest() != load_graph("random:40:100:8").digest()
    assert load_graph("random:3:0:1").vertices == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.txt", "0 1\n1 2\n"),
        ("g.edges", "0 1\n1 2"),
        ("g.tsv", "0\t1\r\n1\t2\r\n"),
        ("g.csv", "id_1,id_2\n0,1\n1,2\n"),
        ("g.csv", "\ufeff# made by hand\n\nfrom, to\n0 , 1 # first\n1,2\n"),
        ("g.el", "% a comment\n  0   1\n\n1 2\n"),
        ("g.tsv", "# c\nsource\ttarget\n0\t1\n1\t2\n"),
    ],
)
def test_edge_lists(tmp_path, name, text):
    spec = write(tmp_path, text, name)
    graph = load_graph(spec)
    assert pairs(graph) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert graph.name == "g"
    assert graph.original_ids is None
    assert pairs(load_graph(spec, directed=True)) == [(0, 1), (1, 2)]


def test_sparse_ids_are_renumbered_in_order_and_few_gaps_stay(tmp_path):
    few = load_graph(write(tmp_path, "0 5\n1 3\n"))
    assert (few.vertices, few.original_ids) == (6, None)
    graph = load_graph(write(tmp_path, "1000000 7\n7 500\n"))
    assert graph.original_ids.tolist() == [7, 500, 1000000]
    assert pairs(graph) == [(0, 1), (0, 2), (1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("0 1\n1 x\n", 2, "'1 x'"),
        ("0 1\n\n# c\n1\n", 4, "1 column;"),
        ("0 1\n1 2 3\n", 2, "3 columns"),
        ("0 1 0.5\n1 2 0.5\n", 1, "3 columns"),
        ("0 1\n1 -2\n", 2, "negative"),
        ("0 1\n1 2.5\n", 2, "whole numbers"),
        ("0 1\n1 2.0\n", 2, "whole numbers"),
        ("0 1\n1 nan\n", 2, "whole numbers"),
        ("0 1\n1 2147483648\n", 2, "too large"),
        ("0 1\n1 99999999999999999999999\n", 2, "too large"),
        ("a,b\n0,1\n1 2\n", 3, "1 column;"),
        ("0,1\n1,,2\n", 2, "3 columns"),
        ("a b\nc d\n0 1\n", 2, "'c d'"),
        ("0 1\n" + "y" * 500, 2, "..."),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, line, part):
    spec = write(tmp_path, text)
    message = refused(spec)
    assert f"{spec}, line {line}: " in message
    assert part in message
    assert "expected two vertex ids" in message
    assert len(message) < 400


@pytest.mark.parametrize("text", ["", "# nothing\n", "a,b\n", "\n\n"])
def test_a_list_without_edges_is_refused(tmp_path, text):
    assert "no edges" in refused(write(tmp_path, text))


def test_other_unusable_paths(tmp_path):
    assert "digits" in refused(str(tmp_path / "missing.txt"))
    (tmp_path / "f.txt").mkdir()
    assert "cannot read" in refused(str(tmp_path / "f.txt"))
    assert "not a text file" in refused(write(tmp_path, b"\xff\xfe\x00", "b.csv"))
    assert "format" in refused(write(tmp_path, "0 1", "g.xml"))
    for undirected in ("karate", "random:4:3:1"):
        assert "undirected" in refused(undirected, directed=True)


@pytest.mark.whole
def test_many_edges_are_read_quickly(tmp_path):
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 100_000, (250_000, 2))
    spec = write(tmp_path, "\n".join(f"{u} {v}" for u, v in edges.tolist()))
    start = time.process_time()
    graph = load_graph(spec, directed=True)
    # CPU time, so that a busy machine does not matter: about 0.1 s.
    assert time.process_time() - start < 1
    assert len(graph.indices) > 245_000


def csr(graph, **extra):
    return {"indptr": graph.indptr, "indices": graph.indices, **extra}


def test_npz(tmp_path):
    graph = random_graph(30, 80, 1, directed=True)
    path = tmp_path / "g.npz"
    np.savez(path, **csr(graph, features=np.ones((30, 3)), labels=np.arange(30)))
    loaded = load_graph(str(path))
    assert loaded.digest() == graph.digest()
    assert loaded.features.dtype == np.float32
    assert loaded.labels.tolist() == list(range(30))
    u, v = load_graph(str(path), directed=False).edges()
    assert len(u) > len(graph.indices)
    assert set(zip(u, v, strict=True)) == set(zip(v, u, strict=True))


def test_npz_of_scipy(tmp_path):
    graph = random_graph(30, 80, 2, directed=True)
    data = np.ones(len(graph.indices))
    matrix = scipy.sparse.csr_matrix((data, graph.indices, graph.indptr), shape=(30, 30))
    scipy.sparse.save_npz(tmp_path / "g.npz", matrix)
    assert load_graph(str(tmp_path / "g.npz")).digest() == graph.digest()
    matrix.data[0] = 0
    scipy.sparse.save_npz(tmp_path / "g.npz", matrix)
    assert len(load_graph(str(tmp_path / "g.npz")).indices) == len(graph.indices) - 1
    scipy.sparse.save_npz(tmp_path / "c.npz", matrix.tocsc())
    assert "tocsr" in refused(str(tmp_path / "c.npz"))
    scipy.sparse.save_npz(tmp_path / "r.npz", scipy.sparse.csr_matrix((3, 4)))
    assert "square" in refused(str(tmp_path / "r.npz"))


class Bomb:
    """Pickles into a call that would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize(
    ("arrays", "part"),
    [
        ({"indptr": [0, 0]}, "no array indices"),
        ({"indptr": [0, 1], "indices": [4]}, "outside"),
        ({"indptr": [0, 2], "indices": [0]}, "does not rise"),
        ({"indptr": [0.0, 0.0], "indices": [0]}, "1-D array of integers"),
        ({"indptr": [0], "indices": np.zeros(0, dtype=int)}, "without vertices"),
        (
            {"indptr": [0, 1, 1], "indices": [1], "features": [["a"], ["b"]]},
            "2-D array of floats",
        ),
        ({"indptr": [0, 1, 1], "indices": [1], "features": [[1.0]]}, "features for 1"),
        ({"indptr": [0, 1, 1], "indices": [1], "features": [[1.0], [np.nan]]}, "NaN"),
        ({"indptr": [0, 1, 1], "indices": [1], "features": [[1.0], [1e300]]}, "infinity"),
        ({"indptr": [0, 1, 1], "indices": [1], "labels": [0.5, 1]}, "labels"),
        (
            {"indptr": [0, 1, 1], "indices": [1], "data": 1.0},
            "array data: it is <f8[], not a 1-D",
        ),
        ({"indptr": [0, 1, 1], "indices": [1], "data": [1, 1]}, "2 values for 1 indices"),
        ({"indptr": 0, "indices": [1]}, "array indptr: it is <i8[], not a 1-D array of integers"),
        # Differences of these overflow, and none of them is negative.
        ({"indptr": [0, 2**63 - 1, 1 - 2**63, 0], "indices": np.zeros(0, int)}, "does not rise"),
    ],
)
def test_bad_npz(tmp_path, arrays, part):
    np.savez(tmp_path / "g.npz", **{key: np.array(value) for key, value in arrays.items()})
    assert part in refused(str(tmp_path / "g.npz"))


def test_npz_unpacks_within_a_limit(tmp_path):
    path = tmp_path / "g.npz"
    arrays = {"indptr": [0, 1, 1], "indices": [1], "features": np.zeros((2, 10_000), np.float32)}
    np.savez_compressed(path, **arrays)
    assert load_npz(path).features.shape == (2, 10_000)
    with pytest.raises(PlannerError, match="would unpack to 80,4"):
        load_npz(path, limit=UnpackLimit(allowance=70_000, ratio=10))
    np.savez(path, **arrays)
    assert load_npz(path, limit=UnpackLimit(allowance=0, ratio=1)).vertices == 2


def test_npz_runs_no_pickles(tmp_path):
    target = tmp_path / "ran"
    objects = np.array([Bomb(target)], dtype=object)
    np.savez(tmp_path / "g.npz", indptr=objects, indices=[0])
    assert "refused" in refused(str(tmp_path / "g.npz"))
    (tmp_path / "h.npz").write_bytes(b"not a zip")
    assert "not an archive" in refused(str(tmp_path / "h.npz"))
    assert not target.exists()


def test_import_is_light():
    code = (
        "import sys, switchgnn.planner\n"
        "print([m for m in ('scipy', 'sklearn', 'networkx', 'pymetis') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def build(u, v, **options):
    options = {"name": "g", "vertices": 4, "directed": True} | options
    return graph_from_edges(np.array(u, dtype=np.int64), np.array(v, dtype=np.int64), **options)


def test_duplicates_and_self_loops_are_dropped():
    graph = build([0, 0, 1, 2, 0], [1, 1, 1, 0, 3])
    assert graph.indptr.tolist() == [0, 2, 2, 3, 3]
    assert graph.indices.tolist() == [1, 3, 0]
    assert build([2, 0, 0, 2], [2, 1, 0, 2]).self_loops.tolist() == [0, 2]
    assert build([2, 0], [2, 1], directed=False).self_loops.tolist() == [2]
    assert build([0], [1]).self_loops is None
    u, v = build([0, 1], [1, 2], directed=False).edges()
    assert list(tuples(u, v)) == [(0, 1), (1, 0), (1, 2), (2, 1)]


@given(graphs())
def test_edges_build_the_same_graph_again(graph):
    again = graph_from_edges(*graph.edges(), name="x", vertices=graph.vertices, directed=True)
    assert again.digest() == graph.digest()


def test_digest_depends_on_structure_only():
    plain = build([0], [1])
    other = build([0], [1], name="h", features=np.ones((4, 2), dtype=np.float32))
    assert plain.digest() == other.digest()
    assert plain.digest() != build([1], [0]).digest()
    assert plain.digest() != build([0], [1], vertices=5).digest()


def test_features_must_be_finite():
    for bad in (np.nan, np.inf, -np.inf):
        features = np.zeros((4, 2), dtype=np.float32)
        features[2, 1] = bad
        with reports("vertex 2"):
            build([0], [1], features=features)


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [
        ([0], []), ([0, 2], [0]), ([1, 1], [0]), ([0, 1, 1], [5]), ([0, 1, 1], [-1]),
        ([0, 1, 1], [0]), ([0, 2, 2, 2], [2, 1]), ([0, 2, 2], [1, 1]),
    ],
)  # fmt: skip
def test_rows_must_be_well_formed(indptr, indices):
    with reports():
        Graph(np.array(indptr, dtype=np.int64), np.array(indices, dtype=np.int32), "g")


def test_wrong_types_and_lengths_are_refused():
    with reports("int64"):
        Graph(np.array([0, 0], dtype=np.int32), np.array([], dtype=np.int32), "g")
    for part, u, v, options in (
        ("labels for 3", [0], [1], {"labels": np.zeros(3, dtype=np.int64)}),
        ("float32", [0], [1], {"features": np.zeros((4, 2))}),
        ("0 vertices", [], [], {"vertices": 0}),
        ("outside", [0], [4], {}),
    ):
        with reports(part):
            build(u, v, **options)
