"""The paper-shaped graphs, and the facts that they were calibrated to."""

import numpy as np
import pytest

from switchgnn.planner import load_graph, partition_workers
from switchgnn.planner.costs.study import largest_component, neighbour_counts, share_of_most
from switchgnn.planner.graphs.shaped import SHAPES, load_shaped
from tests.planner.helpers import boundary_of, reports


@pytest.fixture(scope="module")
def reddit():
    return load_graph("reddit-like:0.05:1")


def test_the_same_name_gives_the_same_graph():
    one = load_graph("products-like:0.001:0")
    assert load_graph("products-like:0.001:0") is one
    assert load_graph("products-like:0.001:1").digest() != one.digest()
    load_shaped.cache_clear()
    again = load_graph("products-like:0.001:0")
    assert (again.digest(), again.name) == (one.digest(), "products-like:0.001:0")


@pytest.mark.parametrize("name", SHAPES)
def test_sizes_are_in_proportion(name):
    shape, graph = SHAPES[name], load_graph(f"{name}:0.01:0")
    assert graph.vertices == round(shape.vertices * 0.01)
    source, destination = graph.edges()
    forward = np.sort(source.astype(np.int64) << 32 | destination)
    assert np.array_equal(forward, np.sort(destination.astype(np.int64) << 32 | source))


@pytest.mark.parametrize(("name", "scale"), [("yelp-like", 0.05), ("products-like", 0.02)])
def test_sparse_graphs_keep_their_mean_degree(name, scale):
    shape, graph = SHAPES[name], load_graph(f"{name}:{scale}:0")
    mean = len(graph.indices) / graph.vertices
    assert mean == pytest.approx(2 * shape.edges / shape.vertices, rel=0.005)


def test_a_fifth_of_the_vertices_has_four_fifths_of_the_neighbours(reddit):
    boundary = boundary_of(reddit, partition_workers(reddit, 32, 0))
    assert share_of_most(neighbour_counts(boundary), 0.2) == pytest.approx(0.8, abs=0.1)


def test_the_boundary_is_most_of_the_graph_and_connected(reddit):
    """Its size is stable as the partitions grow in number, while the copies grow."""
    copies, sizes = [], []
    for workers in (8, 32, 128):
        boundary = boundary_of(reddit, partition_workers(reddit, workers, 0))
        sizes.append(len(boundary.vertices()))
        copies.append(boundary.host_copies()[0].size / sizes[-1])
        assert largest_component(boundary) >= 0.99 * sizes[-1]
    assert sizes[-1] < 1.3 * sizes[0]
    assert copies[2] > 1.5 * copies[1] > 2 * copies[0]


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        *((spec, ":SCALE:SEED") for spec in ("reddit-like", "yelp-like:x:1", "yelp-like:1:-1")),
        *((f"products-like:{end}", ":SCALE:SEED") for end in ("1", "1:1:1")),
        *((f"reddit-like:{scale}:0", "must be between") for scale in ("0", "0.0001", "1000")),
    ],
)
def test_malformed_names_and_scales(spec, part):
    with reports(part):
        load_graph(spec)
