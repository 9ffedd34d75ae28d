"""Planetoid files are written here the way Python 2 wrote the originals."""

import os
import pickle
import resource
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse

from switchgnn.planner import load_graph
from switchgnn.planner.graphs.planetoid import read_inert_pickle
from tests.planner.graphs.test_load import refused
from tests.planner.helpers import reports, tuples
from tests.planner.python2_pickle import dump_like_python2

# Vertices 0-4 are in allx (0 and 1 train), 5 to 8 are for testing; 7 is missing (Citeseer).
TEST_IDS = [8, 5, 6]
NEIGHBOURS = {0: [1, 8], 1: [0], 2: [3, 3, 2], 3: [2], 4: [], 5: [6], 6: [5], 7: [], 8: [0]}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    allx = rng.integers(0, 2, (5, 6)).astype(np.float32)
    tx = rng.integers(0, 2, (3, 6)).astype(np.float32)
    ally, ty = np.eye(3, dtype=np.int32)[[0, 1, 2, 0, 1]], np.eye(3, dtype=np.int32)[[2, 1, 0]]
    parts = {
        "graph": defaultdict(list, NEIGHBOURS),
        "allx": scipy.sparse.csr_matrix(allx),
        "tx": scipy.sparse.csr_matrix(tx),
        "x": scipy.sparse.csr_matrix(allx[:2]),
        "ally": ally,
        "ty": ty,
        "y": ally[:2],
    }
    for part, value in parts.items():
        (tmp_path / f"ind.tiny.{part}").write_bytes(dump_like_python2(value))
    (tmp_path / "ind.tiny.test.index").write_text("".join(f"{v}\n" for v in TEST_IDS))
    return tmp_path


@pytest.mark.parametrize("spec", ["tiny", "ind.tiny.graph", "ind.tiny.allx"])
def test_planetoid(folder, spec):
    graph = load_graph(str(folder / spec))
    assert graph.name == "tiny"
    assert graph.vertices == 9
    u, v = graph.edges()
    assert sorted(tuples(u, v)) == [
        (0, 1), (0, 8), (1, 0), (2, 3), (3, 2), (5, 6), (6, 5), (8, 0)
    ]  # fmt: skip
    assert graph.labels.tolist() == [0, 1, 2, 0, 1, 1, 0, 0, 2]
    assert graph.split.tolist() == [1, 1, 2, 2, 2, 3, 3, 0, 3]
    rng = np.random.default_rng(3)
    allx, tx = rng.integers(0, 2, (5, 6)), rng.integers(0, 2, (3, 6))
    assert np.array_equal(graph.features[:5], allx)
    assert np.array_equal(graph.features[TEST_IDS], tx)
    assert not graph.features[7].any()


class Call:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(("part", "protocol"), [("graph", 0), ("allx", 2), ("y", 4)])
def test_a_malicious_pickle_is_refused_and_runs_nothing(folder, part, protocol):
    ran = folder / "ran"
    path = folder / f"ind.tiny.{part}"
    path.write_bytes(pickle.dumps(Call(os.system, f"touch {ran}"), protocol=protocol))
    message = refused(folder / "tiny")
    assert str(path) in message
    assert "system" in message
    assert not ran.exists()


@pytest.mark.parametrize(
    "value",
    [
        Call(eval, "1"),
        Call(getattr, 1, "real"),
        Call(__import__, "os"),
        np.array([None, Call(eval, "1")], dtype=object),
        np.array(["text"]),
        {1, 2},
        range(3),
        np.float64,
    ],
)
def test_everything_unusual_is_refused(tmp_path, value):
    (tmp_path / "p").write_bytes(pickle.dumps(value, protocol=2))
    with reports("refused"):
        read_inert_pickle(tmp_path / "p")


def test_no_pickle_reaches_into_the_admitted_names(tmp_path):
    """A dotted name or a state for an admitted type must not get at anything else."""
    for data in (
        b"\x80\x04\x8c\x08builtins\x8c\x0eint.from_bytes\x93.",
        b"cbuiltins\nlist\n}(Vappend\nI1\nsb.",
        b"ccopyreg\n_reconstructor\n(cbuiltins\nlist\ncbuiltins\nobject\nNtR.",
        *(b"\x80\x02\x82\x01.", b"Pid\n.", b"", b"garbage"),
    ):
        (tmp_path / "p").write_bytes(data)
        with reports():
            read_inert_pickle(tmp_path / "p")


def test_arrays_survive_every_protocol(tmp_path):
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    for protocol in range(5):
        (tmp_path / "p").write_bytes(pickle.dumps(array, protocol=protocol))
        assert read_inert_pickle(tmp_path / "p").tolist() == array.tolist(), protocol


def test_a_missing_file_is_named(folder):
    for part in ("graph", "allx", "tx", "y", "ally", "ty", "test.index"):
        kept = (folder / f"ind.tiny.{part}").read_bytes()
        (folder / f"ind.tiny.{part}").unlink()
        assert part in refused(folder / ("ind.tiny.x" if part == "graph" else "tiny"))
        (folder / f"ind.tiny.{part}").write_bytes(kept)
    (folder / "ind.tiny.x").unlink()  # holds nothing that allx does not
    assert load_graph(str(folder / "tiny")).vertices == 9


@pytest.mark.parametrize(
    ("part", "value"),
    [
        *(("graph", value) for value in ([1, 2], {0: ["a"]}, {0: [9]}, {0: [-1]}, {})),
        ("allx", [1]),
        ("tx", scipy.sparse.csr_matrix(np.ones((3, 5), dtype=np.float32))),
        ("tx", scipy.sparse.csr_matrix(np.ones((2, 6), dtype=np.float32))),
        ("ally", np.zeros(5, dtype=np.int32)),
        *(("test.index", text) for text in ("", "5\nx\n", "5\n5\n6\n", "1\n5\n6\n", "5\n\xe9\n")),
    ],
)
def test_parts_that_do_not_fit_are_refused(folder, part, value):
    data = value.encode("latin1") if part == "test.index" else dump_like_python2(value)
    (folder / f"ind.tiny.{part}").write_bytes(data)
    assert "tiny" in refused(folder / "tiny")


@pytest.mark.parametrize("put", [b"r\xff\xff\xff\x03", b"r\xff\xff\xff\xff", b"p60000000\n"])
def test_a_few_bytes_do_not_take_all_memory(folder, put):
    """Python's reader makes room for all numbers up to that under which an object is remembered."""
    (folder / "ind.tiny.graph").write_bytes(b"\x80\x02}" + put + b".")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "it remembers an object as number" in refused(folder / "tiny")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_a_table_is_not_as_large_as_a_few_bytes_say(folder):
    huge = scipy.sparse.csr_matrix((5, 6))
    huge.resize(100_000, 100_000)
    usual = (folder / "ind.tiny.allx").read_bytes()
    (folder / "ind.tiny.allx").write_bytes(dump_like_python2(huge))
    assert "100,000 vertices with 100,000 features would take" in refused(folder / "tiny")
    (folder / "ind.tiny.allx").write_bytes(usual)
    (folder / "ind.tiny.test.index").write_text("5\n6\n2000000000\n")
    assert "2,000,000,001 vertices with 6 features would take" in refused(folder / "tiny")


def test_a_shape_must_fit(folder):
    data = dump_like_python2(np.arange(4, dtype=np.int32))
    assert data.count(b"K\x04\x85") == 1
    for table, part in (
        (data.replace(b"K\x04\x85", b"K\x05\x85"), "refused"),
        (dump_like_python2(np.empty((1 << 40, 0))), "does not hold a table of classes"),
    ):
        (folder / "ind.tiny.ally").write_bytes(table)
        assert part in refused(folder / "tiny")
    (folder / "ind.tiny.ally").write_bytes(dump_like_python2(np.eye(3)[[0, 1, 2, 0, 1]]))
    (folder / "ind.tiny.allx").write_bytes(dump_like_python2(np.empty((1 << 40, 0))))
    refused(folder / "tiny")


def test_a_pipe_is_not_waited_for(folder):
    for part in ("allx", "test.index"):
        (folder / f"ind.tiny.{part}").unlink()
        os.mkfifo(folder / f"ind.tiny.{part}")
        assert "not a regular file" in refused(folder / "tiny")
        (folder / f"ind.tiny.{part}").unlink()
        (folder / f"ind.tiny.{part}").write_bytes(dump_like_python2(scipy.sparse.eye(5).tocsr()))
