"""G3's partition: every count recounted from the graph after every swap."""

import numpy as np

from switchgnn.planner import partition_workers
from switchgnn.planner.base.arrays import symmetric_rows
from switchgnn.planner.partition import g3 as partition_g3
from switchgnn.planner.partition.g3 import DEGREE_TOLERANCE, RemoteCounts, g3, swap_while_better
from switchgnn.planner.partition.metis import partition_vertices
from tests.planner.helpers import given, graph_of, split_graphs


def neighbour_sets(graph):
    near = [set() for _ in range(graph.vertices)]
    for u, v in zip(*(ends.tolist() for ends in graph.edges()), strict=True):
        near[u].add(v)
        near[v].add(u)
    return near


def remote_sets(near, assignment, workers):
    remote = [set() for _ in range(workers)]
    for vertex, worker in enumerate(assignment):
        remote[worker] |= {w for w in near[vertex] if assignment[w] != worker}
    return remote


class Recounted(RemoteCounts):
    """Counts everything anew after every swap, and remembers the swaps."""

    def __init__(self, graph, assignment, workers):
        source, destination = graph.edges()
        rows = symmetric_rows(source, destination, graph.vertices)
        super().__init__(*rows, np.asarray(assignment, dtype=np.int32), workers)
        self.near = neighbour_sets(graph)
        self.workers = workers
        self.check()

    def swap(self, one, other):
        assert self.assignment[one] != self.assignment[other]
        super().swap(one, other)
        self.check()

    def check(self):
        owners = self.assignment.tolist()
        remote = remote_sets(self.near, owners, self.workers)
        assert self.remote.tolist() == [len(each) for each in remote]
        for vertex, near in enumerate(self.near):
            on = [owners[w] for w in near]
            assert self.inside[vertex].tolist() == [on.count(p) for p in range(self.workers)]
        degrees = np.bincount(owners, weights=[*map(len, self.near)], minlength=self.workers)
        assert self.degree_sum.tolist() == degrees.tolist()


@given(split_graphs())
def test_the_better_swaps_only_improve(split):
    graph, workers, assignment = split
    counts = Recounted(graph, assignment, workers)
    remote, degrees = counts.remote.copy(), counts.degree_sum.copy()
    swaps = swap_while_better(counts)
    assert counts.remote.max() <= remote.max()
    # The counts of all workers, largest first, fall with every swap.
    ordered = [sorted(each.tolist(), reverse=True) for each in (counts.remote, remote)]
    assert ordered[0] < ordered[1] if swaps else ordered[0] == ordered[1]
    assert np.array_equal(np.bincount(counts.assignment), np.bincount(assignment))
    assert counts.degree_sum.max() <= max(DEGREE_TOLERANCE * degrees.mean(), degrees.max())
    assert np.count_nonzero(counts.assignment != assignment) == 2 * swaps


def test_large_graphs_are_cut_for_few_edges(monkeypatch):
    """METIS's volume takes the squares of degrees; the rest of G3's partition stays."""
    graph = skewed_graph()
    told = []

    def watched(*args, **options):
        told.append(options["volume"])
        return partition_vertices(*args, **options)

    monkeypatch.setattr(partition_g3, "partition_vertices", watched)
    g3(graph, 8, 0)
    monkeypatch.setattr(partition_g3, "MOST_VOLUME_EDGES", len(graph.indices) - 1)
    ratio = measures(graph, g3(graph, 8, 0), 8)[1]
    assert told == [True, False]
    assert ratio > 0.95


def test_vertices_and_degrees_are_balanced_each_by_itself():
    """Within METIS's 1.03, where a few vertices have most of the edges."""
    rng = np.random.default_rng(2)
    dense, all_ = 500, 3500
    pairs = {tuple(sorted(each)) for each in rng.integers(0, dense, (10_000, 2)).tolist()}
    pairs |= {(vertex - 1, vertex) for vertex in range(dense, all_)}
    ends = np.array([each for each in pairs if each[0] < each[1]]).T
    assignment = g3(graph_of(*ends, all_), 8, 0)
    for weight in (np.ones(all_), np.bincount(ends.ravel(), minlength=all_)):
        sums = np.bincount(assignment, weights=weight)
        assert sums.max() / sums.mean() <= 1.035


def skewed_graph(vertices=3000, degree=20):
    """Few hubs and many small vertices, in communities."""
    rng = np.random.default_rng(1)
    weight = rng.pareto(1.8, vertices) + 1
    edges = vertices * degree // 2
    source = rng.choice(vertices, edges, p=weight / weight.sum())
    anywhere = rng.choice(vertices, edges, p=weight / weight.sum())
    nearby = (source + rng.integers(1, 100, edges)) % vertices
    return graph_of(source, np.where(rng.random(edges) < 0.7, nearby, anywhere), vertices)


def measures(graph, assignment, workers):
    """(largest remote count, smallest / largest, vertices and degrees: largest / mean)."""
    counts = RemoteCounts(*symmetric_rows(*graph.edges(), graph.vertices), assignment, workers)
    shares = np.bincount(assignment, minlength=workers)
    remote, degrees = counts.remote, counts.degree_sum
    return (
        remote.max(),
        remote.min() / remote.max(),
        shares.max() / shares.mean(),
        degrees.max() / degrees.mean(),
    )


def test_shares_are_balanced_in_every_way(monkeypatch):
    graph, workers = skewed_graph(), 8
    largest, ratio, vertices, degrees = measures(graph, g3(graph, workers, 0), workers)
    monkeypatch.setattr(partition_g3, "swap_while_better", lambda counts: 0)
    start = measures(graph, g3(graph, workers, 0), workers)
    assert vertices <= 1.035
    assert degrees <= max(DEGREE_TOLERANCE, start[3])
    assert start[3] <= 1.035
    assert largest < start[0]
    assert ratio > max(0.95, start[1])
    assert ratio > measures(graph, partition_workers(graph, workers, 0), workers)[1]
