"""Readers of changed files of arrays return, or raise an error of one sentence."""

import io
import itertools
import os
import random
import zipfile
from functools import partial

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse

from switchgnn.base.arrays import pack_arrays
from switchgnn.base.errors import SwitchGNNError
from switchgnn.host.direct import partial_schedules, read_schedule, write_schedule
from switchgnn.planner import build_plan, read_switch_part, read_worker_part, write_plan
from switchgnn.planner.check.plan import check_plan
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.partition.simple import load_assignment
from switchgnn.planner.plan.files import read_assignment
from switchgnn.training import load_dataset, load_files, read_partition, write_partitions
from tests.planner.plan.test_files import forge
from tests.test_arrays import npy, peak

TRIES = 1_000 if os.environ.get("SWITCHGNN_LEVEL") == "all" else 40
MOST_MEMORY = 64 << 20
TYPES = ("<i8", "<i4", ">i8", "|i1", "<u8", "<u4", "<f8", "<f4", "|b1", "|S8", "<U2", "|O", "|V8")
EXTREMES = (0, 1, -1, 2, 127, 1 << 15, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, -(1 << 63))


def karate_arrays():
    graph = load_graph("karate")
    return graph, np.arange(graph.vertices, dtype=np.int32) % 3


def graphs(folder, *, packed=False, sparse=False):
    """A graph in our form or SciPy's, compressed or not."""
    graph, _ = karate_arrays()
    file = folder / "graph.npz"
    if sparse:
        matrix = scipy.sparse.csr_matrix((np.ones(len(graph.indices)), graph.indices, graph.indptr))
        scipy.sparse.save_npz(file, matrix, compressed=packed)
    else:
        arrays = {"indptr": graph.indptr, "indices": graph.indices, "labels": np.arange(34) % 2}
        arrays["self_loops"] = np.array([3, 8])
        save = np.savez_compressed if packed else np.savez
        save(file, **arrays, features=np.ones((34, 2), dtype=np.float32))
    return file, lambda: load_graph(str(file))


def edges_of_pyg(folder):
    """An archive of edge_index, with features as a sparse matrix."""
    graph, _ = karate_arrays()
    file, attr = folder / "graph.npz", scipy.sparse.eye(34, format="csr")
    sparse = {
        f"attr_{name}": getattr(attr, name) for name in ("data", "indices", "indptr", "shape")
    }
    edges = np.stack(graph.edges())
    np.savez(file, edge_index=edges, y=np.arange(34) % 2, edge_weight=np.ones(156), **sparse)
    return file, lambda: load_graph(str(file))


def coordinates(folder):
    graph, _ = karate_arrays()
    ends = graph.edges()
    file = folder / "graph.npz"
    scipy.sparse.save_npz(file, scipy.sparse.coo_matrix((np.ones(156), ends), shape=(34, 34)))
    return file, lambda: load_graph(str(file))


def plans(folder, name, read):
    """One file of a plan, with digests of the changed file."""
    graph, assignment = karate_arrays()
    plan = build_plan(graph, workers=3, slots=9, program="00", assignment=assignment)
    write_plan(plan, folder / "plan")
    file, times = folder / "plan" / name, itertools.count()

    def use():
        forge(plan, folder / "plan", name, file.read_bytes())
        read(folder / "plan") if next(times) % 4 else check_plan(folder / "plan", graph)

    return file, use


def schedules(folder):
    graph, assignment = karate_arrays()
    file = folder / "schedule.safetensors"
    write_schedule(partial_schedules(graph, assignment, 3)[1], file)

    def use():
        found = read_schedule(file)
        for sums, rows in ((found.send, len(found.vertices)), (found.add, found.in_indptr[-1])):
            sums.apply(np.ones((rows, 1), dtype=np.float32))

    return file, use


def partitions(folder):
    write_partitions(load_dataset("karate"), karate_arrays()[1], folder / "parts")
    return folder / "parts/partition-001.safetensors", lambda: read_partition(folder / "parts", 1)


def assignments(folder):
    np.save(folder / "given.npy", karate_arrays()[1])
    return folder / "given.npy", lambda: load_assignment(folder / "given.npy")


def features(folder):
    edges, file, labels = folder / "e.txt", folder / "f.npy", folder / "l.npy"
    edges.write_text("0 1\n1 2\n2 3\n")
    np.save(labels, np.array([0, 1, 0, 1]))
    np.save(file, np.ones((4, 3)))
    return file, lambda: load_files(edges, file, labels)


# Each makes a file in a folder, and returns it and its reader.
KINDS = {
    "graph": graphs,
    "graph, packed": partial(graphs, packed=True),
    "edges of PyG": edges_of_pyg,
    "coordinates": coordinates,
    "sparse matrix": partial(graphs, packed=True, sparse=True),
    "switch's part": partial(plans, name="switch.safetensors", read=read_switch_part),
    "worker's part": partial(
        plans, name="worker-001.safetensors", read=lambda plan: read_worker_part(plan, 1)
    ),
    "plan's assignment": partial(plans, name="assignment.safetensors", read=read_assignment),
    "schedule": schedules,
    "partition": partitions,
    "assignment": assignments,
    "features": features,
}


def flip_bytes(data, chosen):
    for _ in range(chosen.choice((1, 1, 2, 8))):
        data[chosen.randrange(len(data))] = chosen.randrange(256)


def cut_or_repeat(data, chosen):
    start = chosen.randrange(len(data))
    end = chosen.choice((len(data), start + chosen.randrange(100)))
    if chosen.random() < 0.5:
        del data[start:end]
    else:
        data[start:start] = data[start:end]


BYTES = (flip_bytes, cut_or_repeat)


def change_arrays(data, chosen):
    """Write a consistent archive with another array."""
    if data.startswith(b"\x93NUMPY"):
        return npy(other_array(np.load(io.BytesIO(data)), chosen))
    if not data.startswith(b"PK"):
        arrays = safetensors.numpy.load(data)
        change_one(arrays, chosen, lambda one: native(other_array(one, chosen)))
        return pack_arrays(arrays)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change_one(members, chosen, lambda one: npy(other_array(np.load(io.BytesIO(one)), chosen)))
    buffer = io.BytesIO()
    packing = chosen.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return buffer.getvalue()


def native(array):
    return array.astype(array.dtype.newbyteorder("=")) if array.dtype.kind in "iufb" else array


def change_one(members, chosen, changed):
    """Remove, rename, replace or change a member by chance."""
    name, other = chosen.choice(list(members)), chosen.choice(list(members))
    kind = chosen.randrange(8)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[f"../{name}"] = members[other]
    elif kind == 2:
        members[name] = members[other]
    else:
        members[name] = changed(members[name])


def other_array(array, chosen):
    """An array with other numbers, dtype or shape."""
    kind = chosen.randrange(6)
    if kind < 3 and array.size and array.dtype.kind in "iufb":
        made = array.copy().reshape(-1)
        with np.errstate(over="ignore"):
            for _ in range(chosen.choice((1, 1, 5))):
                made[chosen.randrange(made.size)] = np.array(chosen.choice(EXTREMES)).astype(
                    array.dtype
                )
        return made.reshape(array.shape)
    if kind == 3:
        return array[chosen.randrange(2) :] if array.ndim else array.reshape(1)
    if kind == 4:
        return array.astype(chosen.choice(TYPES[:9])) if array.dtype.kind in "iufb" else array
    single = array.reshape(-1)[0] if array.size else array
    return chosen.choice((single, array[None], array.reshape(-1)[:0]))


@pytest.mark.whole
@pytest.mark.parametrize("kind", KINDS)
def test_only_errors_of_ours(kind, tmp_path):
    (file, read), chosen = KINDS[kind](tmp_path), random.Random(kind)
    read()
    right, refused = file.read_bytes(), []

    def read_changed():
        for number in range(TRIES):
            data = bytearray(right)
            if number % 2:
                chosen.choice(BYTES)(data, chosen)
            else:
                data = change_arrays(bytes(data), chosen)
            file.write_bytes(data)
            try:
                read()
            except SwitchGNNError as error:
                refused.append(number)
                assert "\n" not in str(error)

    assert peak(read_changed) < MOST_MEMORY
    assert len(refused) > TRIES / 5
