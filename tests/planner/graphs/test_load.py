"""Graphs as arrays, and from files and names."""

import gzip
import io
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from switchgnn.base import machine
from switchgnn.base.errors import SwitchGNNError
from switchgnn.planner import Graph, PlannerError, graph_from_edges, load_graph
from switchgnn.planner.graphs.graph import SPLIT_TEST, SPLIT_TRAIN, SPLIT_VALIDATION
from tests.planner.helpers import given, graphs, pairs, random_graph, refusal_of, reports, tuples

zipped = partial(gzip.compress, mtime=0)


def write(tmp_path, text, name="g.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def refused(spec, **options):
    return refusal_of(PlannerError, load_graph, str(spec), **options)


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
    assert set(pairs(graph)) < set(pairs(more))
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


def test_a_random_graph_is_what_its_name_says():
    graph = load_graph("random:40:100:7")
    assert (graph.vertices, len(graph.indices)) == (40, 200)
    assert graph.digest() == load_graph("random:40:100:7").digest()
    assert graph.digest() != load_graph("random:40:100:8").digest()
    assert load_graph("random:3:0:1").vertices == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("g.txt", text) for text in ("0 1\n1 2\n", "// made by hand\n0 1 // first\n\n1 2\n")),
        ("g.edges", "0 1\n1 2"),
        *(("g.tsv", text) for text in ("0\t1\r\n1\t2\r\n", "# c\nsource\ttarget\n0\t1\n1\t2\n")),
        *(("g.csv", text) for text in ("id_1,id_2\n0,1\n1,2\n", "source;target\n0;1\n1;2\n")),
        ("g.csv", "\ufeff# made by hand\n\nfrom, to\n0 , 1 # first\n1,2\n"),
        ("g.el", "% a comment\n  0   1\n\n1 2\n"),
        ("g.csv", '"source","target"\n"0","1"\n"1", "2"\n'),
        ("g.csv", ",source,target\n0,0,1\n1,1,2\n"),
        ("g.tsv", "\tsource\ttarget\n0\t0\t1\n1\t1\t2\n"),
        ("g.csv", "Unnamed: 0,from node,to node\n0,0.0,1.0\n1,1.0,2.0\n"),
        ("g.csv", "source,target\n0.0,1.0\n1.0,2.0\n"),
        *(("g.txt", text) for text in ("3 2\n0 1\n1 2\n", "% sizes\n3 3 2\n1 2\n2 3\n")),
        ("g.txt", "1 2\n0 1\n1 2\n2 1\n"),
        ("g.txt.gz", zipped(b"0 1\n1 2\n")),
        ("g.csv", zipped(b"a,b\n0,1\n1,2\n")),
    ],
)
def test_edge_lists(tmp_path, name, text):
    spec = write(tmp_path, text, name)
    graph = load_graph(spec)
    assert pairs(graph) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert (graph.name, graph.vertices) == ("g", 3)
    assert graph.original_ids is None or graph.original_ids.tolist() == [1, 2, 3]
    one_way = set(pairs(load_graph(spec, directed=True)))
    assert {(0, 1), (1, 2)} <= one_way <= {(0, 1), (1, 2), (2, 1)}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("3000000000 7\n7 9000000000000000000\n", [7, 3_000_000_000, 9_000_000_000_000_000_000]),
        ("20000000000000000000 7\n7 9\n", ["20000000000000000000", "7", "9"]),
        ("from,to\nbob,ann\nbob,cy\n", ["ann", "bob", "cy"]),
        ("bob ann\nbob cy\n", ["ann", "bob", "cy"]),
        ("New York\tRome\nNew York\tBari\n", ["Bari", "New York", "Rome"]),
        ('"a, b";c\n"a, b";d # e\n', ["a, b", "c", "d"]),
        ("http://x/#a http://x/\nhttp://x/#a u7\n", ["http://x/", "http://x/#a", "u7"]),
        ("u1 7\nu2 7\n", ["7", "u1", "u2"]),
    ],
)
def test_large_ids_and_names_are_renumbered_in_order(tmp_path, text, ids):
    graph = load_graph(write(tmp_path, text))
    assert graph.original_ids.tolist() == ids
    assert (graph.vertices, len(graph.indices)) == (3, 4)


@pytest.mark.parametrize(
    ("text", "vertices", "ids"),
    [
        ("6 2\n0 1\n1 2\n", 6, None),  # three isolated ones
        ("6 2\n1 2\n2 6\n", 6, [1, 2, 3, 4, 5, 6]),
        ("6 3\n0 1\n1 2\n", 7, None),  # two edges, not three
        ("6 2\n0 1\n1 6\n", 7, None),  # seven vertices, not six
    ],
)
def test_a_line_of_sizes_is_no_edge(tmp_path, text, vertices, ids):
    graph = load_graph(write(tmp_path, text))
    assert graph.vertices == vertices
    assert (None if graph.original_ids is None else graph.original_ids.tolist()) == ids
    assert len(graph.indices) == 2 * (text.count("\n") - (vertices == 6))


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("edge_id,src,dst\n7,0,1\n8,1,2\n", "edge_id"),
        (":START_ID,:END_ID,:TYPE\n0,1,KNOWS\n1,2,LIKES\n", ":TYPE"),
        (":START_ID(A);since:int;:END_ID(A)\n0;1999;1\n1;2000;2\n", "since:int"),
        ("src,dst,relation\n0,1,http://x\n1,2,a #b\n", "relation"),
        ("Id\tTarget\tSource\tLabel\n5\t1\t0\tof all\n6\t2\t1\t\n", "Id"),
        (",timestamp,u,v\n0,5,0,1\n1,6,1,2\n", "timestamp"),
        ("u,v,Unnamed: 0,id\n0,1,5,6\n1,2,5,7\n", "id"),
        ("Head,relation,Tail\nann,likes,bob\nbob,likes,cy\n", "relation"),
        ("source,target,from,to\n0,1,1999,2000\n1,2,1999,2001\n", "from"),
    ],
)
def test_columns_are_known_by_their_names(tmp_path, caplog, text, column):
    spec = write(tmp_path, text)
    assert f"column {column!r}, neither a vertex id" in refused(spec, edge_weights=True)
    assert pairs(load_graph(spec, directed=True)) == [(0, 1), (1, 2)]
    assert f"Ignored columns of {spec}: {column}" in caplog.text
    assert pairs(load_graph(spec, edge_weights=False, directed=True)) == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a,b,score\n0,1,2.5\n1,2,1\n", "score"),
        ("person,friend,since\nann,bob,2010\nbob,cy,2011\n", "since"),
    ],
)
def test_columns_beside_unknown_names_are_refused(tmp_path, text, column):
    spec = write(tmp_path, text)
    assert f"column {column!r}, neither a vertex id nor named weight" in refused(spec)
    assert pairs(load_graph(spec, edge_weights=False, directed=True)) == [(0, 1), (1, 2)]


def weights_of(graph):
    return dict(zip(pairs(graph), graph.weights.tolist(), strict=True))


BOTH_WAYS = {(0, 1): 0.5, (1, 0): 0.5, (1, 2): 2.0, (2, 1): 2.0}


@pytest.mark.parametrize(
    "text",
    [
        *("0 1 0.5\n1 2 2\n", "0,1,5e-1\n1,2,2\n2,1,2\n", "from;to;weight\n0;1;0.5\n1;2;2\n"),
        *("from;to;weight\na;b;0.5\nb;c;2\n", "a\tb\t0.5\nb\tc\t2\n"),
        *(",u,v,w\n0,0,1,0.5\n1,1,2,2\n", "weight:float;from;to\n0.5;0;1\n2;1;2\n"),
        "value,Source,Type,Target\n0.5,a,of,b\n2,b,of,c\n",
        "u,v,w\n2,1,2\n0,1,0.5\n1,0,0.5\n",  # sizes come before any header
        *("3 3 2\n0 1 0.5\n1 2 2\n", "3 2\n0 1 0.5\n1 2 2\n"),
        "9007199254740993 9007199254740995 0.5\n9007199254740995 9007199254740997 2\n",
    ],
)
def test_the_third_column_is_the_weight_of_both_directions(tmp_path, text):
    graph = load_graph(write(tmp_path, text), edge_weights=True)
    assert weights_of(graph) == BOTH_WAYS
    assert graph.weights.dtype == np.float32


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("0 1\n1 2\n", 1, "2 columns"),
        ("0 1 0.5\n1 2\n", 2, "2 columns"),
        ("0 1 2 3\n", 1, "4 columns"),
        ("w,u,v\n2,0,1\n1,2\n", 3, "2 columns"),
        ("0 1 0.5\n1 2 x\n", 2, "has the weight 'x'; expected two vertex ids and a finite weight."),
        ("0 1 inf\n", 1, "has the weight 'inf'; expected two vertex ids and a finite weight."),
        ("0 1 2\n0 21 nan\n", 2, "'0 21 nan' has the weight 'nan'; expected two vertex ids and "),
    ],
)
def test_a_line_without_a_weight_is_named(tmp_path, text, line, part):
    message = refused(write(tmp_path, text), edge_weights=True)
    assert f"line {line}: " in message
    assert part in message


@pytest.mark.filterwarnings("error")
def test_a_weight_beyond_float32_is_refused_without_a_warning(tmp_path):
    edges = np.array([[0, 1], [1, 2]])
    np.savez(tmp_path / "e.npz", edge_index=edges, edge_weight=np.array([1e300, 1]))
    for path in (write(tmp_path, "0 1 1e300\n1 2 1\n"), str(tmp_path / "e.npz")):
        assert "finite as float32" in refused(path, edge_weights=True)


def test_weights_of_arrays_and_matrices(tmp_path):
    table = np.array([[0, 1, 0.5], [1, 2, 2]])
    np.save(tmp_path / "g.npy", np.concatenate([table, table[:1]]))
    np.savez(tmp_path / "e.npz", edge_index=table[:, :2].astype(int), edge_weight=table[:, 2])
    matrix = scipy.sparse.coo_matrix((table[:, 2], table[:, :2].astype(int).T), shape=(3, 3))
    scipy.sparse.save_npz(tmp_path / "m.npz", matrix.tocsr())
    scipy.io.mmwrite(tmp_path / "m.mtx", matrix)
    one_way = {(0, 1): 0.5, (1, 2): 2.0}
    for name, expected in (("g.npy", BOTH_WAYS), ("e.npz", BOTH_WAYS), ("m.npz", one_way)):
        assert weights_of(load_graph(str(tmp_path / name), edge_weights=True)) == expected
    assert weights_of(load_graph(str(tmp_path / "m.mtx"), edge_weights=True)) == one_way


def test_an_edge_has_one_weight_and_each_direction_may_have_its_own(tmp_path):
    graph = load_graph(write(tmp_path, "0 1 1\n1 0 2\n1 2 3\n2 2 4\n"), edge_weights=True)
    assert weights_of(graph) == {(0, 1): 1, (1, 0): 2, (1, 2): 3, (2, 1): 3}
    assert (graph.self_loops.tolist(), graph.loop_weights.tolist()) == ([2], [4])
    twice = write(tmp_path, "0 1 1\n0 1 2\n", "t.txt")
    assert "the weights 1.0 and 2.0 for the edge 0 to 1" in refused(twice, edge_weights=True)
    assert "has no edge weights" in refused("karate", edge_weights=True)


def test_columns_and_arrays_that_are_not_read_are_named(tmp_path, caplog):
    spec = write(tmp_path, "Id,Source,Target,Ty\x1b[pe,Weight\n1,0,1,x,2\n")
    load_graph(spec, edge_weights=True)
    archive = tmp_path / "g.npz"
    np.savez(archive, edge_index=[[0], [1]], names=["a", "b"], **{"class\x1bes": np.array([{}])})
    load_graph(str(archive))
    assert caplog.messages == [
        f"Ignored columns of {spec}: Id, Ty\\x1b[pe",
        f"Ignored arrays of {archive}: names, class\\x1bes",
    ]


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
        *((text, 2, "3 columns") for text in ("0 1\n1 2 3\n", "a,b\nb,c,1\n", "0,1\n1,,2\n")),
        *((text, 1, "3 columns") for text in ("0 1 0.5\n1 2 0.5\n", "0,0,1\n1,1,2\n")),
        ("0 1\n1 -2\n", 2, "negative"),
        *((text, 2, "whole numbers") for text in ("0 1\n1 2.5\n", "0 1\n1 2.0.1\n")),
        *((text, 2, "whole numbers") for text in ("0 1\n1 nan\n", "0 1\n1 " + "9" * 5_000)),
        (",a,b,w\n0,0,1,2\n1,1,2,5\n", 1, "column 'w', which --edge-weights uses"),
        ("0 1 0.5\n", 1, "--ignore-weights"),
        *((text, 1, "whole numbers") for text in ("0.5 1\n", "0,1#c\n")),
        ("a,b\nb,\n", 2, "empty id"),
        ("6 8 9\n0 1\n1 2\n", 1, "not their number"),
        ("a,b\n0,1\n1 2\n", 3, "1 column;"),
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
    assert "Cannot read" in refused(str(tmp_path / "f.txt"))
    assert "not a text file" in refused(write(tmp_path, b"\xff\xfe\x00", "b.csv"))
    assert "format" in refused(write(tmp_path, "0 1", "g.xml"))
    for undirected in ("karate", "random:4:3:1"):
        assert "undirected" in refused(undirected, directed=True)


@pytest.mark.whole
def test_many_edges_are_read_quickly(tmp_path):
    edges = np.random.default_rng(0).integers(0, 100_000, (250_000, 2))
    spec = write(tmp_path, "\n".join(f"{u} {v}" for u, v in edges.tolist()))
    start = time.process_time()
    graph = load_graph(spec, directed=True)
    # CPU time, so that a busy machine does not matter: about 0.1 s.
    assert time.process_time() - start < 1
    assert len(graph.indices) > 245_000


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0.0, 2, np.nan], [0, 2, -1]),
        ([[0], [1], [1]], [0, 1, 1]),
        ([[0, 1], [1, 1], [0, 0]], [[0, 1], [1, 1], [0, 0]]),
    ],
)
def test_labels_and_split_of_npz(tmp_path, labels, expected):
    masks = dict(zip(MASKS, np.eye(3, dtype=bool), strict=True))
    edges = {"edge_index": [[0, 1], [1, 2]], "edge_attr": [1.5, 2]}
    np.savez(tmp_path / "g.npz", y=labels, **edges, **masks)
    graph = load_graph(str(tmp_path / "g.npz"), edge_weights=False)
    assert graph.labels.tolist() == expected
    assert graph.split.tolist() == [SPLIT_TRAIN, SPLIT_VALIDATION, SPLIT_TEST]


def test_npz_of_scipy(tmp_path):
    graph = random_graph(30, 80, 2, directed=True)
    matrix = matrix_of(graph)
    scipy.sparse.save_npz(tmp_path / "g.npz", matrix)
    assert load_graph(str(tmp_path / "g.npz")).digest() == graph.digest()
    matrix.data[0] = 0
    scipy.sparse.save_npz(tmp_path / "g.npz", matrix)
    assert len(load_graph(str(tmp_path / "g.npz")).indices) == len(graph.indices) - 1
    for other in (matrix.todia(), matrix.tobsr((2, 2))):
        scipy.sparse.save_npz(tmp_path / "c.npz", other)
        assert "tocsr" in refused(str(tmp_path / "c.npz"))
    for shape in (scipy.sparse.csr_matrix((3, 4)), scipy.sparse.coo_matrix((3, 4))):
        scipy.sparse.save_npz(tmp_path / "r.npz", shape)
        assert "square" in refused(str(tmp_path / "r.npz"))


def packed(save, *arrays, **named):
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue(), zipped(file.getvalue())


def matrix_of(graph, value=1.0):
    values = np.full(len(graph.indices), value)
    return scipy.sparse.csr_matrix((values, graph.indices, graph.indptr), shape=(30, 30))


FEATURES = scipy.sparse.random(30, 5, 0.3, format="csr", random_state=1, dtype=np.float32)
OTHERS = {"features": FEATURES.toarray(), "labels": np.arange(30)}


def benchmark(matrix):
    arrays = {
        f"{key}_{name}": getattr(each, name)
        for key, each in (("adj", matrix), ("attr", FEATURES))
        for name in ("data", "indices", "indptr", "shape")
    }
    return packed(np.savez, labels=OTHERS["labels"], **arrays)


def of_pyg(matrix):
    edges = np.stack(matrix.nonzero())
    return packed(np.savez, edge_index=edges, x=OTHERS["features"], y=OTHERS["labels"])


def own(matrix):
    return packed(np.savez, indptr=matrix.indptr, indices=matrix.indices, **OTHERS)


# By what saves a graph: the file's format, and the content for a matrix.
MATRICES = {
    "csr": (".npz", lambda matrix: packed(scipy.sparse.save_npz, matrix)),
    "csc": (".npz", lambda matrix: packed(scipy.sparse.save_npz, matrix.tocsc())),
    "coo": (".npz", lambda matrix: packed(scipy.sparse.save_npz, matrix.tocoo())),
    "matrix market": (".mtx", lambda matrix: packed(scipy.io.mmwrite, matrix)),
    "gnn-benchmark": (".npz", benchmark),
    "own": (".npz", own),
    "edge_index": (".npz", of_pyg),
    "columns": (".npy", lambda matrix: packed(np.save, np.stack(matrix.nonzero()))),
    "rows": (".npy", lambda matrix: packed(np.save, np.stack(matrix.nonzero()).T * 1.0)),
}


@pytest.mark.parametrize("kind", MATRICES)
def test_what_libraries_save(tmp_path, kind):
    graph = random_graph(30, 80, 1, directed=True)
    suffix, save = MATRICES[kind]
    for content, end in zip(save(matrix_of(graph)), ("", ".gz"), strict=True):
        loaded = load_graph(write(tmp_path, content, f"g{suffix}{end}"), directed=True)
        assert (loaded.digest(), loaded.name) == (graph.digest(), "g")
        if kind in ("gnn-benchmark", "own", "edge_index"):
            assert np.array_equal(loaded.features, OTHERS["features"])
            assert loaded.labels.tolist() == list(range(30))
    undirected = load_graph(str(tmp_path / f"g{suffix}"))
    assert (undirected.digest() != graph.digest()) == (kind in {"edge_index", "columns", "rows"})


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "matrix market", "gnn-benchmark"])
def test_weights_of_a_matrix_are_refused_by_name(tmp_path, kind):
    graph = random_graph(30, 80, 1, directed=True)
    suffix, save = MATRICES[kind]
    spec = write(tmp_path, save(matrix_of(graph, 2.5))[0], f"g{suffix}")
    assert "--ignore-weights" in refused(spec)
    assert load_graph(spec, edge_weights=False).digest() == graph.digest()
    columns = write(tmp_path, packed(np.save, [[0, 1, 2.5]])[0], "g.npy")
    assert "--ignore-weights" in refused(columns)


def test_a_list_keeps_isolated_vertices_that_have_features(tmp_path):
    for first in (0, 1):
        edges = np.array([[first, 2], [2, 4]])
        content, _ = packed(np.savez, edge_index=edges.T, x=np.ones((6, 1)))
        graph = load_graph(write(tmp_path, content, "g.npz"))
        assert (graph.vertices, len(graph.indices)) == (6, 4)
    content, _ = packed(np.savez, edge_index=[[0], [1]], edge_weight=[1], num_nodes=3)
    assert load_graph(write(tmp_path, content, "g.npz")).vertices == 3
    content, _ = packed(np.savez, edge_index=np.zeros((2, 0), int), num_nodes=3)
    assert load_graph(write(tmp_path, content, "g.npz")).vertices == 3
    content, _ = packed(np.savez, edge_index=edges.T + 2, x=np.ones((6, 1)))
    assert load_graph(write(tmp_path, content, "g.npz")).original_ids.tolist() == [1, 2, 3, 4, 5, 6]


BANNER = "%%MatrixMarket matrix coordinate pattern general\n"


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        *(("g.mtx", content, "Matrix Market") for content in ("1 2\n", BANNER + "3 3 2\n1 2\n")),
        ("g.mtx", BANNER + "3 3 99999999999\n1 2\n", "99,999,999,999 entries"),
        ("g.mtx", BANNER + "3 3 1\n1 4\n", "Matrix Market"),
        ("g.mtx", BANNER + "3 4 1\n1 4\n", "square"),
        ("g.mtx", BANNER + "2147483647 2147483647 1\n1 4\n", "of memory"),
        ("g.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n", "array"),
        ("g.npy", packed(np.save, [[0, 1, 2, 3]])[0], "[2, E] or [E, 2]"),
        ("g.npy", packed(np.save, [[0, 0.5]])[0], "whole numbers"),
        ("g.npy", packed(np.save, [[0, -1]])[0], "negative"),
        ("g.npz", packed(np.savez, edge_index=[[0], [1]], edge_weight=[1, 1])[0], "2 values for 1"),
        ("g.npz", packed(np.savez, indptr=[0, 1], indices=[0], data=[[0]])[0], "1 values for 1"),
        ("g.npz", packed(np.savez, row=[0], col=[1])[0], "no array indices or shape"),
        ("g.npz", packed(np.savez, row=[0], col=[1, 2], shape=[3, 3])[0], "1 rows for 2"),
        ("g.npz", packed(np.savez, row=[0], col=[3], shape=[3, 3])[0], "outside"),
        (
            "g.npz",
            packed(np.savez, indptr=[0, 1, 1], indices=[1], attr_indptr=[0, 1, 1],
                   attr_indices=[9], attr_data=[1.0], attr_shape=[2, 2])[0],
            "no CSR matrix",
        ),
        ("g.txt.gz", zipped(b"0 1\n" * 99)[:-20], "gzip"),
        ("g.txt", b"\x1f\x8b" + bytes(20), "gzip"),
    ],
)  # fmt: skip
def test_bad_files_of_libraries(tmp_path, monkeypatch, name, content, part):
    monkeypatch.setattr(machine, "available_memory", lambda: 8 << 30)
    with reports(part, kind=SwitchGNNError):
        load_graph(write(tmp_path, content, name))


MASKS = ("train_mask", "val_mask", "test_mask")
ONE_EDGE = {"indptr": [0, 1, 1], "indices": [1]}


@pytest.mark.parametrize(
    ("arrays", "part"),
    [
        ({"indptr": [0, 0]}, "no array indices"),
        ({"indptr": [0, 1], "indices": [4]}, "outside"),
        ({"indptr": [0, 2], "indices": [0]}, "does not rise"),
        ({"indptr": [0.0, 0.0], "indices": [0]}, "1-D array of integers"),
        ({"indptr": [0], "indices": np.zeros(0, dtype=int)}, "without vertices"),
        (ONE_EDGE | {"features": [["a"], ["b"]]}, "2-D array of floats"),
        (ONE_EDGE | {"features": [[1.0]]}, "features for 1"),
        (ONE_EDGE | {"features": [[1.0], [np.nan]]}, "NaN"),
        (ONE_EDGE | {"features": [[1.0], [1e300]]}, "infinity"),
        (ONE_EDGE | {"labels": [0.5, 1]}, "label 0.5"),
        (ONE_EDGE | {"y": [[0.5, 1], [1, 1]]}, "zeros and ones"),
        (ONE_EDGE | {"edge_attr": [[1, 0]]}, "--ignore-weights"),
        (ONE_EDGE | {"edge_weight": [2.5]}, "--ignore-weights"),
        (ONE_EDGE | {"train_mask": [True, False]}, "all of train_mask"),
        (ONE_EDGE | {name: [True, False] for name in MASKS}, "vertex 0 in two of"),
        (ONE_EDGE | {name: [False] for name in MASKS}, "array split: it has the"),
        (ONE_EDGE | {"idx_train": [0]}, "idx_train"),
        (ONE_EDGE | {"data": 1.0}, "array data: it is <f8[], not a 1-D or"),
        (ONE_EDGE | {"data": [1, 1]}, "2 values for 1 indices"),
        ({"indptr": 0, "indices": [1]}, "array indptr: it is <i8[], not a 1-D array of integers"),
        # Differences of these overflow, and none of them is negative.
        ({"indptr": [0, 2**63 - 1, 1 - 2**63, 0], "indices": np.zeros(0, int)}, "does not rise"),
    ],
)
def test_bad_npz(tmp_path, arrays, part):
    np.savez(tmp_path / "g.npz", **{key: np.array(value) for key, value in arrays.items()})
    assert part in refused(str(tmp_path / "g.npz"))


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
    assert pairs(build([0, 1], [1, 2], directed=False)) == [(0, 1), (1, 0), (1, 2), (2, 1)]


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
    with reports("not a 1-D array of <i8"):
        Graph(np.array([0, 0], dtype=np.int32), np.array([], dtype=np.int32), "g")
    for part, u, v, options in (
        ("array labels: it has", [0], [1], {"labels": np.zeros(3, dtype=np.int64)}),
        ("float32", [0], [1], {"features": np.zeros((4, 2))}),
        ("0 vertices", [], [], {"vertices": 0}),
        ("outside", [0], [4], {}),
    ):
        with reports(part):
            build(u, v, **options)
