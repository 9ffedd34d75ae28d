import json

import numpy as np
import pytest
from hypothesis import given
from safetensors.numpy import load_file, save_file

from switchgnn.planner import boundary_edges, build_plan
from switchgnn.training import load_dataset, partition_dataset, read_partition, write_partitions
from switchgnn.training.data.partition import ARRAYS, SHARED
from tests.training.helpers import STEADY, assigned_datasets, refusal


def edges_of(part):
    return [tuple(pair) for pair in part.vertices[part.edges].T.tolist()]


@STEADY
@given(assigned_datasets())
def test_every_edge_is_at_one_worker_or_a_boundary_edge(drawn):
    data, assignment = drawn
    boundary = boundary_edges(data.graph, assignment)
    found = list(zip(boundary.source.tolist(), boundary.destination.tolist(), strict=True))
    for part in partition_dataset(data, assignment):
        assert edges_of(part) == sorted(edges_of(part))
        assert (assignment[part.vertices] == part.worker).all()
        found += edges_of(part)
    u, v = data.graph.edges()
    loops = data.self_loops.tolist()
    every = [*zip(u.tolist(), v.tolist(), strict=True), *zip(loops, loops, strict=True)]
    assert sorted(found) == sorted(every)


@STEADY
@given(assigned_datasets())
def test_degrees_are_those_of_the_whole_graph(drawn):
    data, assignment = drawn
    dense = np.zeros((data.vertices, data.vertices), dtype=int)
    dense[data.graph.edges()] = 1
    with_loops = dense.copy()
    with_loops[data.self_loops, data.self_loops] = 1
    for part in partition_dataset(data, assignment):
        v = part.vertices
        assert np.array_equal(part.out_degree, dense.sum(axis=1)[v])
        assert np.array_equal(part.in_degree, dense.sum(axis=0)[v])
        assert np.array_equal(part.in_degree + part.self_loop, with_loops.sum(axis=0)[v])


@STEADY
@given(assigned_datasets())
def test_each_vertex_is_at_one_worker_with_all_that_belongs_to_it(drawn):
    data, assignment = drawn
    parts = list(partition_dataset(data, assignment))
    assert [part.worker for part in parts] == list(range(assignment.max() + 1))
    assert sorted(np.concatenate([part.vertices for part in parts])) == list(range(data.vertices))
    for part in parts:
        assert (np.diff(part.vertices) > 0).all()
        for name in ("features", "labels", "train", "validation", "test"):
            assert np.array_equal(getattr(part, name), getattr(data, name)[part.vertices]), name
        assert part.workers == len(parts)
        assert part.total_vertices == data.vertices
    for name in ("train", "validation", "test"):
        total = sum(int(getattr(part, name).sum()) for part in parts)
        assert all(getattr(part, f"total_{name}") == total for part in parts)


@STEADY
@given(assigned_datasets())
def test_what_is_read_is_what_was_written(tmp_path_factory, drawn):
    data, assignment = drawn
    folder = tmp_path_factory.mktemp("parts") / "p"
    write_partitions(data, assignment, folder)
    for part in partition_dataset(data, assignment):
        again = read_partition(folder, part.worker)
        for name in ARRAYS:
            one, other = getattr(again, name), getattr(part, name)
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None), name
            assert np.array_equal(one, other), name
        for name in SHARED:
            assert getattr(again, name) == getattr(part, name), name


def test_rows_are_those_of_the_plan(karate):
    data, assignment = karate
    plan = build_plan(data.graph, workers=3, slots=32, program="0" * 64, assignment=assignment)
    for part in partition_dataset(data, assignment):
        assert np.array_equal(part.vertices, plan.workers[part.worker].vertices)


@pytest.fixture
def karate():
    return load_dataset("karate"), np.arange(34, dtype=np.int32) % 3


@pytest.fixture
def folder(karate, tmp_path):
    write_partitions(*karate, tmp_path / "p")
    return tmp_path / "p"


def test_a_worker_reads_only_its_own_file(folder):
    for other in (0, 2):
        (folder / f"partition-{other:03d}.safetensors").unlink()
    assert read_partition(folder, 1).worker == 1
    with refusal("partition-000.safetensors"):
        read_partition(folder, 0)


def test_older_partitions_are_replaced(karate, folder):
    data, assignment = karate
    write_partitions(data, assignment % 2, folder)
    with refusal("Cannot read"):
        read_partition(folder, 2)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["p"]
    assert len(list(folder.iterdir())) == 2


def test_nothing_else_is_replaced(karate, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    (tmp_path / "file").write_text("keep")
    for target in (tmp_path, tmp_path / "file"):
        with refusal(str(target)):
            write_partitions(*karate, target)
    assert (tmp_path / "mine.txt").read_text() == "keep"


@pytest.mark.parametrize("assignment", [np.zeros(3, int), np.arange(34) * 2, np.full(34, -1)])
def test_an_assignment_that_does_not_fit_is_refused(karate, tmp_path, assignment):
    with refusal(""):
        write_partitions(karate[0], assignment, tmp_path / "p")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "change", "part"),
    [
        ("facts", lambda _: np.frombuffer(b"{", np.uint8), "not JSON"),
        ("facts", lambda _: np.frombuffer(b"[]", np.uint8), "is no partition"),
        ("facts", lambda facts: replaced(facts, version=5), "version"),
        ("facts", lambda facts: replaced(facts, workers=True), "workers"),
        ("features", lambda rows: rows[1:], "array features: it has the shape"),
        ("edges", lambda edges: edges + 1, "array edges: it has numbers outside 0..11"),
    ],
)
def test_a_damaged_part_is_refused(folder, name, change, part):
    arrays = load_file(path := folder / "partition-000.safetensors")
    save_file(arrays | {name: change(arrays[name])}, path)
    with refusal(part):
        read_partition(folder, 0)


def replaced(facts, **changes):
    return np.frombuffer(json.dumps(json.loads(facts.tobytes()) | changes).encode(), np.uint8)
