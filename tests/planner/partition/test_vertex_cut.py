"""Vertex cuts: edges, replicas and masters against sets; graphs whose best cut is known."""

import numpy as np
import pytest
from hypothesis import strategies as st

from switchgnn.planner import partition_workers
from switchgnn.planner.base import arrays
from switchgnn.planner.partition import vertex_cut
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.partition.vertex_cut import VERTEX_CUTS, cut_graph, find_vertex_cut
from switchgnn.planner.partition.workers import MOST_SHARE
from tests.planner import helpers

NAMES = sorted([*VERTEX_CUTS, "vertex-cut:2", "vertex-cut-ebv:2", "vertex-cut-ebv:2:0.5"])
every_cut = pytest.mark.parametrize("name", NAMES)


def cut(graph, workers, name="vertex-cut", seed=0):
    return cut_graph(graph, workers, find_vertex_cut(name)(graph, workers, seed))


@every_cut
def test_every_edge_has_one_worker_in_both_directions(name):
    @helpers.given(helpers.graphs(), st.integers(2, 9), st.integers(0, 3), settings=helpers.FEWER)
    def holds(graph, workers, seed):
        workers = min(workers, graph.vertices)
        find = find_vertex_cut(name)
        edge_worker = find(graph, workers, seed)
        assert edge_worker.dtype == np.uint8
        assert edge_worker.shape == graph.indices.shape
        assert edge_worker.max(initial=0) < workers
        of = dict(zip(helpers.pairs(graph), edge_worker.tolist(), strict=True))
        assert all(of.get((v, u), worker) == worker for (u, v), worker in of.items())
        assert np.array_equal(edge_worker, find(graph, workers, seed))

    holds()


@helpers.given(helpers.graphs(), st.integers(1, 9), st.integers(0, 99))
def test_replicas_are_stars_of_one_master_each(graph, workers, seed):
    workers = min(workers, graph.vertices)
    # Any cut will do, also one that leaves workers without edges.
    edge_worker = np.random.default_rng(seed).integers(0, workers, len(graph.indices), np.uint8)
    cut = cut_graph(graph, workers, edge_worker)
    at = list(helpers.tuples(cut.vertex, cut.worker))
    ends = zip(helpers.pairs(graph), edge_worker.tolist(), strict=True)
    needed = {(vertex, worker) for edge, worker in ends for vertex in edge}
    assert len(set(at)) == len(at)
    assert needed <= set(at)
    # A vertex without edges needs a master, and so does a worker that has no other.
    masters = [worker for _, worker in at[: graph.vertices]]
    only = {(v, w) for v, w in enumerate(masters) if masters.count(w) == 1}
    lonely = set(range(graph.vertices)) - {vertex for vertex, _ in needed}
    assert all(vertex in lonely or (vertex, w) in only for vertex, w in set(at) - needed)
    assert cut.masters == graph.vertices
    assert cut.vertex[: cut.masters].tolist() == list(range(graph.vertices))
    assert at[cut.masters :] == sorted(at[cut.masters :])
    assert set(cut.worker[: cut.masters].tolist()) == set(range(workers))
    star = {(m, at[m][0]) for m in range(cut.masters, cut.vertices)}
    assert set(helpers.pairs(cut)) == star | {(v, m) for m, v in star}
    held = np.bincount(cut.vertex)
    shared = [sum(w == worker and held[v] > 1 for v, w in at) for worker in range(workers)]
    assert cut.shared().tolist() == shared
    assert cut.replication_factor == len(at) / graph.vertices
    together = [frozenset(w for v, w in at if v == vertex) for vertex in range(graph.vertices)]
    assert cut.sets == len({each for each in together if len(each) > 1})


def test_masters_share_their_mirrors_evenly():
    u, v = np.triu_indices(32, 1)
    graph = helpers.graph_of(u, v, 32)
    cut = cut_graph(graph, 4, np.arange(len(graph.indices), dtype=np.uint8) % 4)
    assert cut.replication_factor == 4
    assert np.bincount(cut.worker[:32]).tolist() == [8] * 4
    assert cut.edge_balance == 1


@every_cut
def test_a_cut_is_balanced_and_better_than_chance(name):
    graph = helpers.random_graph(400, 3000, 1)
    (u, v), rng = graph.edges(), np.random.default_rng(0)
    for workers in (4, 16):
        found = cut(graph, workers, name)
        # METIS balances vertices.
        assert 1 <= found.edge_balance <= (1.5 if "metis" in name else MOST_SHARE + 0.02)
        chance = rng.integers(0, workers, 400 * 400, np.uint8)[np.minimum(u, v) * 400 + v + u]
        assert found.vertices < cut_graph(graph, workers, chance).vertices


@every_cut
def test_leaves_of_a_star_are_never_replicated(name):
    star = cut(helpers.graph_of([0] * 400, range(1, 401), 401), 4, name)
    assert star.vertex[401:].tolist() == [0] * 3
    assert star.shared().tolist() == [1] * 4


@helpers.given(
    *(helpers.graphs(), st.integers(2, 6), st.integers(1, 2), st.sampled_from([0.0, 0.1, 0.5])),
    settings=helpers.FEWER,
)
def test_each_edge_takes_the_least_score_of_equation_24(graph, workers, leaves, gamma):
    """In one order that has the smallest sums of degrees first, as in EBV."""
    workers = min(workers, graph.vertices)
    leaf_of = even_leaf_spine(workers, min(leaves, workers), 1).leaf_of_worker
    order, rows = [], vertex_cut._rows_of(*arrays.symmetric_rows(*graph.edges(), graph.vertices))
    of_edge = list(zip(rows[1][rows[2]].tolist(), rows[1].tolist(), strict=True))
    degree = np.diff(rows[0])

    def stream(rows, given, *rest):
        order.extend(given.tolist())
        return real(rows, given, *rest)

    real, vertex_cut._stream = vertex_cut._stream, stream
    try:
        cut = vertex_cut.cut_edges(graph, workers, 1, leaves=min(leaves, workers), gamma=gamma)
    finally:
        vertex_cut._stream = real
    worker = dict(zip(helpers.pairs(graph), cut.tolist(), strict=True))
    sums = [sum(degree[list(of_edge[at])]) for at in order]
    assert sums == sorted(sums)
    assert sorted(of_edge[at] for at in order) == sorted(e for e in of_edge if e[0] < e[1])
    edges, has = [0] * workers, [set() for _ in range(workers)]
    for u, v in (of_edge[at] for at in order):
        scores = []
        for i in range(workers):
            near = set().union(*(has[j] for j in range(workers) if leaf_of[j] == leaf_of[i]))
            score = (1 - gamma) * ((u not in has[i]) + (v not in has[i]))
            score += gamma * ((u not in near) + (v not in near))
            score += edges[i] / (len(order) / workers) + len(has[i]) / (graph.vertices / workers)
            scores.append(score)
        chosen = worker.get((u, v), worker.get((v, u)))
        assert scores[chosen] == pytest.approx(min(scores), abs=1e-9)
        edges[chosen] += 1
        has[chosen] |= {u, v}


@pytest.mark.parametrize("size", [3, 8, 20])
def test_two_joined_cliques_share_one_vertex(size):
    u, v = np.triu_indices(size, 1)
    cliques = cut(helpers.graph_of([*u, *(u + size), 0], [*v, *(v + size), size], 2 * size), 2)
    assert cliques.vertex[cliques.masters :].tolist() in ([0], [size])
    assert cliques.shared().tolist() == [1, 1]


def test_workers_of_a_leaf_are_neighbours():
    u, v = np.triu_indices(12, 1)
    shift = 12 * np.arange(3)[:, None]
    cliques = cut(helpers.graph_of((u + shift).ravel(), (v + shift).ravel(), 36), 6, "vertex-cut:3")
    leaf_of = np.array(even_leaf_spine(6, 3, spines=1).leaf_of_worker)
    assert all(len(set(leaf_of[cliques.worker[cliques.vertex == v]])) == 1 for v in range(36))


def test_a_cut_edge_is_at_its_end_with_the_lower_degree():
    graph = helpers.random_graph(60, 200, 3)
    owner, degree = partition_workers(graph, 4, 0), np.diff(graph.indptr)
    workers = find_vertex_cut("vertex-cut-metis")(graph, 4, 0).tolist()
    for ends, worker in zip(helpers.pairs(graph), workers, strict=True):
        assert worker == owner[min(ends, key=lambda x: (degree[x], x))]


@helpers.given(helpers.graphs(), st.integers(2, 5), st.integers(0, 99), settings=helpers.FEWER)
def test_refinement_keeps_count(graph, workers, seed):
    rows = vertex_cut._rows_of(*arrays.symmetric_rows(*graph.edges(), graph.vertices))
    either = np.minimum(np.arange(len(rows[1])), rows[2])
    part = np.random.default_rng(seed).integers(0, workers, len(either) + 1, np.uint8)[either]
    count = vertex_cut._count_edges(rows[0], rows[1], part, workers) // 2
    most, nowhere = np.full(workers, len(either)), np.zeros(graph.vertices, dtype=bool)
    largest = vertex_cut._refine(rows, most, nowhere, count, part)
    assert np.array_equal(part, part[rows[2]])
    assert np.array_equal(count, vertex_cut._count_edges(rows[0], rows[1], part, workers) // 2)
    assert largest == (count[(count > 0).sum(axis=1) > 1] > 0).sum(axis=0).max()


@pytest.mark.whole
@every_cut
def test_compiled_and_interpreted_cuts_agree(monkeypatch, name):
    graph, found = helpers.random_graph(150, 700, 5), []
    for few in (1 << 60, -1):
        monkeypatch.setattr(arrays, "_FEW", few)
        monkeypatch.setattr(vertex_cut, "_FEW", few)
        made = cut(graph, 5, name)
        found.append([made.edge_worker.tolist(), made.worker.tolist()])
    assert found[0] == found[1]


def test_names():
    assert all(vertex_cut.is_vertex_cut(name) for name in [*NAMES, "vertex-cut:x"])
    assert not any(
        vertex_cut.is_vertex_cut(name) for name in (None, "metis", "cdfgnn:2", "vertex-cut-x")
    )
    for wrong in ("vertex-cutt", "vertex-cut:0", "vertex-cut:2:0.5", "vertex-cut-ebv:2:2", "metis"):
        with helpers.reports(wrong, *VERTEX_CUTS, "vertex-cut-ebv:LEAVES:GAMMA"):
            find_vertex_cut(wrong)
    graph = helpers.random_graph(5, 9, 0)
    for name in VERTEX_CUTS:
        with helpers.reports("6 workers are too many"):
            cut(graph, 6, name)
    with helpers.reports("6 workers are too many"):
        cut_graph(graph, 6, np.zeros(len(graph.indices), dtype=np.uint8))
    with helpers.reports("4 leaves are too many"):
        cut(graph, 3, "vertex-cut:4")
