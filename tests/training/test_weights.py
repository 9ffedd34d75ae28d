"""Edge weights: factors, partial sums, and what a worker refuses."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv

from switchgnn.planner import graph_from_edges
from switchgnn.training import load_dataset, partition_dataset, read_partition, write_partitions
from switchgnn.training.base.compression import CompressionOptions
from switchgnn.training.base.errors import DatasetError, TrainingError, UnsupportedLayerError
from switchgnn.training.base.options import TrainOptions
from switchgnn.training.data.load import dataset_from_pyg
from switchgnn.training.data.weights import exchanged_graph, factors_of, told_cost
from switchgnn.training.exchange.sums import RemoteSum
from switchgnn.training.job import write_job
from switchgnn.training.layers.models import distribute
from switchgnn.training.trainer import Trainer
from tests.training.helpers import STEADY
from tests.training.layers.test_layers import WIDE, half, make_data


def weighted(ends, weights, vertices):
    return graph_from_edges(*ends, name="w", vertices=vertices, directed=True, weights=weights)


@STEADY
@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 120))
def test_factors_of_products_are_found_in_any_component_and_with_any_sign(seed, vertices, edges):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, vertices, (2, edges))
    factors = np.exp(rng.normal(0, 0.4, (2, vertices))) * rng.choice([-1, 1], (2, vertices))
    graph = weighted(ends, factors[0, ends[0]] * factors[1, ends[1]], vertices)
    found, (source, target) = factors_of(graph), graph.edges()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0, source] * found[1, target], graph.weights, rtol=1e-6)


RING = np.array([[0, 0, 1, 1], [2, 3, 2, 3]])


@pytest.mark.parametrize(
    "weights",
    [
        [2, 1, 2, 1.00001],
        [2, 1, -2, 1],
        [2, 0, 2, 0],
        # Of 0 to 2 and of 1 to 3 the factors differ so much that fixed point would be coarse.
        [1, 1e-3, 1],
    ],
)
def test_other_weights_have_no_factors(weights):
    ends = RING[:, [0, 2, 3]] if len(weights) == 3 else RING
    assert factors_of(weighted(ends, np.ones(len(weights)), 4)) is not None
    assert factors_of(weighted(ends, np.array(weights), 4)) is None


def test_the_cost_is_told_and_a_plan_has_a_vertex_for_each_partial_sum():
    data, assignment = make_data(1, directed=True, weights="any"), np.arange(40) % 3
    source, target = data.graph.edges()
    crossing = assignment[source] != assignment[target]
    sums = sorted({*zip(assignment[source[crossing]], target[crossing], strict=True)})
    cost = told_cost(data.graph, assignment, data.factors)
    assert f"send {len(sums)} partial sums, and not {len(set(source[crossing]))} features" in cost
    graph, owner = exchanged_graph(data.graph, assignment, data.factors)
    assert [*zip(owner[40:], graph.indices, strict=True)] == sums
    products = make_data(1, directed=True, weights="factors")
    assert "cost no exchange" in told_cost(products.graph, assignment, products.factors)
    assert exchanged_graph(products.graph, assignment, products.factors)[0] is products.graph
    assert told_cost(make_data(1, directed=True).graph, assignment, None) == ""


def test_a_job_tells_the_cost(tmp_path):
    job = write_job(make_data(1, directed=True, weights="any"), 2, tmp_path / "job")
    assert "partial sums, and not" in job.why


@pytest.mark.parametrize("weights", ["factors", "any"])
def test_weights_of_a_part_are_written_and_read(tmp_path, weights):
    data, assignment = make_data(1, directed=True, weights=weights), np.arange(40) % 3
    write_partitions(data, assignment, tmp_path / "parts")
    dense = np.zeros((40, 40))
    dense[data.graph.edges()] = data.graph.weights
    with_loops = dense.copy()
    with_loops[data.self_loops, data.self_loops] = data.graph.loop_weights
    for part in partition_dataset(data, assignment):
        ends = part.vertices[part.edges]
        np.testing.assert_array_equal(part.edge_weights, with_loops[tuple(ends)].astype(np.float32))
        np.testing.assert_allclose(part.in_weight, dense.sum(axis=0)[part.vertices], rtol=1e-6)
        again = read_partition(tmp_path / "parts", part.worker)
        for name in ("edge_weights", "in_weight", "factors", "partial", "partial_weights"):
            np.testing.assert_array_equal(getattr(again, name), getattr(part, name))


@pytest.mark.parametrize(
    ("weights", "call", "words"),
    [
        (None, lambda x, edges, _: (x, edges, torch.ones(edges.shape[1])), "the job has none"),
        ("any", lambda x, edges, own: (x, edges, own * 2), "other edge weights"),
        ("any", lambda x, edges, own: (x, edges, own.requires_grad_()), "other edge weights"),
        ("any", lambda x, edges, own: (x, edges, own[1:]), "other edge weights"),
    ],
)
def test_other_weights_than_those_of_the_part_are_refused(weights, call, words):
    part = half(weights=weights)
    layer = distribute(GCNConv(WIDE, 2), part, RemoteSum(SimpleNamespace(copied_edges=None)))
    own = None if part.edge_weights is None else torch.from_numpy(part.edge_weights)
    with pytest.raises(UnsupportedLayerError, match=words):
        layer(*call(torch.from_numpy(part.features), torch.from_numpy(part.edges), own))


def test_copies_do_not_go_with_partial_sums():
    copying = SimpleNamespace(copied_edges=np.zeros((2, 0), dtype=np.int64))
    with pytest.raises(UnsupportedLayerError, match="no products of factors"):
        distribute(GATConv(WIDE, 2), half(weights="any"), RemoteSum(copying))


def test_rows_are_not_skipped_where_partial_sums_are_sent():
    part = half(weights="any")
    remote = SimpleNamespace(
        columns=None, transport=SimpleNamespace(skip=None), attending=nullcontext
    )
    asked = CompressionOptions(cache="0.1", rest=0.5)
    with pytest.raises(TrainingError, match="--rest skips rows"):
        Trainer(GCNConv(WIDE, 2), part, remote, TrainOptions(), compression=asked)


def of_pyg(weights):
    masks = dict.fromkeys(("train_mask", "val_mask", "test_mask"), torch.tensor([True, False]))
    masks |= {"val_mask": torch.tensor([False, True]), "test_mask": torch.tensor([False, False])}
    ends, y = torch.tensor([[0, 1, 0], [1, 0, 0]]), torch.tensor([0, 1])
    return Data(x=torch.ones(2, 1), edge_index=ends, y=y, edge_weight=weights, **masks)


def test_weights_of_a_data_of_pyg():
    graph = dataset_from_pyg(of_pyg(torch.tensor([0.5, 2, 3])), "two").graph
    assert (graph.weights.tolist(), graph.loop_weights.tolist()) == ([0.5, 2], [3])
    assert dataset_from_pyg(of_pyg(torch.ones(3)), "two").graph.weights is None
    with pytest.raises(DatasetError, match=r"one number in edge_weight for each of its 3 edges"):
        dataset_from_pyg(of_pyg(torch.ones(3, 2)), "two")
    with pytest.raises(DatasetError, match="no edge weights: leave --edge-weights out"):
        load_dataset("karate", edge_weights=True)
