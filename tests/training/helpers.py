"""Drawn data sets, and tiny Planetoid files."""

import subprocess
import sys
from collections import defaultdict

import numpy as np
import scipy.sparse
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from switchgnn.base.errors import SwitchGNNError
from switchgnn.planner import graph_from_edges
from switchgnn.training import dataset_from_graph, split_vertices
from tests.planner.helpers import reports
from tests.planner.python2_pickle import dump_like_python2
from tests.support.speed import seconds_here

# The same examples in every run, and no time limit that a busy machine could break.
STEADY = settings(
    deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)


def said_by_the_first_of_two(script, *words, after=()):
    """Run a script for ranks 0 and 1 at once, with words before and after; return 0's lines."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", script, *map(str, words)]
    workers = [subprocess.Popen([*command, str(rank), *after], **pipes) for rank in range(2)]
    try:
        output, errors = workers[0].communicate(timeout=seconds_here(60))
        workers[1].communicate(timeout=seconds_here(60))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert workers[0].returncode == 0, errors[-3000:]
    return output.splitlines()


@st.composite
def datasets(draw):
    vertices = draw(st.integers(1, 25))
    ids = st.integers(0, vertices - 1)
    pairs = np.array(draw(st.lists(st.tuples(ids, ids), max_size=80)), dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    graph = graph_from_edges(
        pairs[:, 0], pairs[:, 1], name="drawn", vertices=vertices, directed=draw(st.booleans())
    )
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    labels = random.integers(0, 3, vertices)
    if draw(st.booleans()):
        labels = random.integers(0, 2, (vertices, 3)).astype(np.float32)
    return dataset_from_graph(
        graph,
        features=random.random((vertices, 4), dtype=np.float32),
        labels=labels,
        split=split_vertices(labels, seed=1),
        classes=3,
    )


@st.composite
def assigned_datasets(draw):
    """A data set and an assignment in which every worker has a vertex."""
    data = draw(datasets())
    workers = draw(st.integers(1, min(5, data.vertices)))
    rest = data.vertices - workers
    extra = draw(st.lists(st.integers(0, workers - 1), min_size=rest, max_size=rest))
    return data, np.array(draw(st.permutations([*range(workers), *extra])), dtype=np.int32)


def write_planetoid(folder, name="cora", gap=False):
    """Write ind.NAME.* of 620 vertices as the originals were; `gap` leaves one test id out."""
    random = np.random.default_rng(5)
    known, tests, train, classes = 600, 20, 12, 3
    ids = known + random.permutation(tests)
    ids = ids[ids != known + 7] if gap else ids
    vertices = known + tests
    neighbours = defaultdict(list, {u: [] for u in range(vertices)})
    for u, v in random.integers(0, vertices, (1500, 2)).tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    neighbours[3] += [3, 4, 4]
    neighbours[4].append(3)
    features = random.integers(0, 2, (vertices, 6)).astype(np.float32)
    features[1] = 0
    table = np.eye(classes, dtype=np.int32)[random.integers(0, classes, vertices)]
    parts = {
        "graph": neighbours,
        "allx": scipy.sparse.csr_matrix(features[:known]),
        "tx": scipy.sparse.csr_matrix(features[known : known + len(ids)]),
        "x": scipy.sparse.csr_matrix(features[:train]),
        "ally": table[:known],
        "ty": table[known : known + len(ids)],
        "y": table[:train],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for part, value in parts.items():
        (folder / f"ind.{name}.{part}").write_bytes(dump_like_python2(value))
    (folder / f"ind.{name}.test.index").write_text("".join(f"{v}\n" for v in ids))


def refusal(part, kind=SwitchGNNError):
    return reports(part, kind=kind)
