"""Training on many workers is training on one: losses of every epoch, and the weights."""

import threading
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import torch
import torch_geometric.nn as pyg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, shortest_path

from switchgnn.host.base.pace import Pace
from switchgnn.host.direct.kinds import binned_schedules
from switchgnn.host.direct.outbox import visit_order
from switchgnn.host.direct.stream import Stream
from switchgnn.host.wire.header import KIND_AT, Kind
from switchgnn.training import load_dataset, partition_dataset
from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.base.options import TrainOptions
from switchgnn.training.layers.bins import (
    PIPELINES,
    BinnedSum,
    BinOptions,
    distribute_in_bins,
    local_order,
    pack_bins,
    vertices_per_bin,
)
from switchgnn.training.layers.models import ModelOptions, build_model
from tests.host.direct.crew import Hub, binned_on_hub, together
from tests.training.layers.test_layers import LAYERS, half, make_data, on_one
from tests.training.threads import (
    EPOCHS,
    TOLERANCE,
    distance,
    losses,
    shared_out,
    train_in_threads,
    train_parts,
)


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("model", ["gcn", "sage", "gin"])
def test_many_workers_train_like_one(karate, model, workers):
    results = train_in_threads(karate, workers, model=model)
    off, expected = distance(karate, results, model=model)
    assert off < TOLERANCE
    for name, share in expected.items():
        assert getattr(results[0][0][-1].accuracy, name) == pytest.approx(share)


@pytest.mark.parametrize("precompute", [True, False], ids=["kept", "each time"])
@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_the_same_where_features_are_summed_before_the_map(karate, model, precompute):
    """Karate has 34 features, fewer than the hidden units here."""
    options = {"model": model, "hidden": 40}
    results = train_in_threads(karate, 2, precompute=precompute, **options)
    assert distance(karate, results, **options)[0] < TOLERANCE


def test_dropout_drops_the_same_however_many_workers(karate):
    alone, among_four = (
        losses(train_in_threads(karate, workers, model="gcn", dropout=0.5)) for workers in (1, 4)
    )
    assert among_four == pytest.approx(alone, abs=TOLERANCE)
    without = losses(train_in_threads(karate, 1, model="gcn"))
    assert max(abs(a - b) for a, b in zip(alone, without, strict=True)) > 5 * TOLERANCE


# All vertices of karate in two bins, in several, each in one of its own.
MEMORIES = {"two bins": 10**6, "several": 2000, "one vertex each": 1}
SEVERAL = BinOptions(MEMORIES["several"])


def train_in_bins(data, workers, model, bins, *, dropout=0.0):
    assignment = shared_out(data.vertices, workers)
    transports = binned_on_hub(binned_schedules(data.graph, assignment, workers))
    shape = ModelOptions(model=model, layers=3, hidden=8, dropout=dropout)
    options = TrainOptions(
        epochs=EPOCHS, weight_decay=5e-4, input_dropout=dropout / 2, evaluate_every=EPOCHS
    )

    @contextmanager
    def distributed(net, part, transport):
        with BinnedSum(transport, bins) as remote:
            distribute_in_bins(net, part, remote)
            yield remote

    return train_parts(data, assignment, transports, shape, options, distributed)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("model", ["gcn", "sage", "gin"])
def test_many_workers_in_bins_train_like_one(karate, model, workers):
    results = train_in_bins(karate, workers, model, SEVERAL)
    off, expected = distance(karate, results, model=model)
    reports = results[0][0]
    assert off < TOLERANCE
    for name, share in expected.items():
        assert getattr(reports[-1].accuracy, name) == pytest.approx(share)
    for report in reports:
        assert report.exchange > 0
        assert 0 <= report.waiting <= report.seconds


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
def test_bins_of_any_size_and_any_overlap_train_like_one(karate, memory, pipeline):
    results = train_in_bins(karate, 3, "gcn", BinOptions(memory, *PIPELINES[pipeline]))
    assert distance(karate, results, model="gcn")[0] < TOLERANCE


def test_dropout_drops_the_same_for_bins_of_any_size(karate):
    whole, without = (
        losses(train_in_threads(karate, 1, model="gcn", dropout=share)) for share in (0.5, 0.0)
    )
    assert whole != pytest.approx(without, abs=10 * TOLERANCE)
    for memory in MEMORIES.values():
        found = losses(train_in_bins(karate, 1, "gcn", BinOptions(memory), dropout=0.5))
        assert found == pytest.approx(whole, abs=TOLERANCE)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", ["gcn model", "sage model", "sage model, projected", "gin model"])
def test_gradients_of_inputs_on_directed_graphs_too(name, directed):
    torch.manual_seed(1)
    data = make_data(3, directed=directed)
    model = LAYERS[name]()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    weights = torch.randn(data.vertices, 5)
    outputs, inputs, gradients = on_one(model, data, weights)
    assignment = shared_out(data.vertices, 3)
    transports = binned_on_hub(binned_schedules(data.graph, assignment, 3))
    parts = list(partition_dataset(data, assignment))

    def work(worker):
        net, part = LAYERS[name](), parts[worker]
        net.load_state_dict(state)
        with BinnedSum(transports[worker], BinOptions(1000)) as remote:
            distribute_in_bins(net, part, remote)
            features = torch.from_numpy(part.features).requires_grad_()
            found = net(features, torch.from_numpy(part.edges))
            (found * weights[part.vertices]).sum().backward()
        transports[worker].close()
        assert torch.allclose(found, outputs[part.vertices], atol=1e-5)
        assert torch.allclose(features.grad, inputs[part.vertices], atol=1e-4)
        return [each.grad for each in net.parameters()]

    for expected, *found in zip(gradients, *together(work, 3), strict=True):
        assert torch.allclose(sum(found), expected, atol=1e-4, rtol=1e-4)


def test_a_bin_is_sent_before_what_comes_late():
    """Worker 0 gets no data frames, and sends the second layer's rows of bins of its own."""
    data = load_dataset("digits")
    assignment = (np.arange(data.vertices) >= 900).astype(np.int32)
    schedules = binned_schedules(data.graph, assignment, 2)
    more = threading.Event()

    class Holding(Hub):
        """Holds back frames for worker 0 until its second round has begun."""

        def __init__(self):
            super().__init__(2)
            self.held = []

        def take(self, frame):
            theirs = frame[:6] == bytes.fromhex(self.stations[0].mac.replace(":", ""))
            if theirs and frame[KIND_AT] & 0xF == Kind.FEATURE and not more.is_set():
                self.held.append(frame)
                return
            held, self.held = (self.held, []) if more.is_set() else ([], self.held)
            for each in held:
                super().take(each)
            super().take(frame)

    transports = binned_on_hub(schedules, hub=Holding(), pace=Pace(timeout=20.0))
    parts = list(partition_dataset(data, assignment))
    feed = Stream.feed

    def watched(stream, rows, given):
        feed(stream, rows, given)
        if stream.side.worker == 0:
            if stream.round.number == 2:
                early.append(not first[0].round.incoming.done)
                more.set()
            else:
                first.append(stream)

    early, first = [], []
    state = build_model(ModelOptions(), 64, 10).state_dict()

    def work(worker):
        own = build_model(ModelOptions(), 64, 10)
        own.load_state_dict(state)
        with torch.no_grad(), BinnedSum(transports[worker], BinOptions(20_000)) as remote:
            distribute_in_bins(own, parts[worker], remote)
            return own(torch.from_numpy(parts[worker].features), None)

    Stream.feed = watched
    try:
        together(work, 2)
    finally:
        Stream.feed = feed
    assert early[0], "the second layer began only when the whole first one was there"


class Doubled(pyg.models.GCN):
    def forward(self, x, edges):
        return 2 * super().forward(x, edges)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pyg.models.GAT(12, 4, 2, 5), "attention"),
        (lambda: pyg.models.GCN(12, 4, 2, 5, norm="layer_norm"), "normalisation"),
        (lambda: pyg.models.GCN(12, 4, 2, 5, jk="cat"), "jumping"),
        (lambda: Doubled(12, 4, 2, 5), "Doubled cannot be computed in bins"),
        (lambda: pyg.GCNConv(12, 4), "bins"),
    ],
)
def test_what_cannot_be_done_in_bins_is_refused(make, words):
    with pytest.raises(UnsupportedLayerError, match=words):
        distribute_in_bins(make(), half(), BinnedSum.__new__(BinnedSum))


STEADY = settings(deadline=None, derandomize=True, max_examples=80)


@st.composite
def parts(draw):
    rows = draw(st.integers(1, 25))
    ends = st.tuples(st.integers(0, rows - 1), st.integers(0, rows - 1))
    edges = np.array(draw(st.lists(ends, max_size=40)), dtype=np.int64).reshape(-1, 2).T
    return edges, np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)))


def components_and_depths(edges, rows):
    """The component of each row, and its distance from the component's first row."""
    graph = csr_matrix((np.ones(edges.shape[1]), edges), shape=(rows, rows))
    _, component = connected_components(graph, directed=False)
    roots = np.unique(component, return_index=True)[1]
    depth = shortest_path(graph, directed=False, unweighted=True, indices=roots).min(axis=0)
    return roots[component].tolist(), depth.tolist()


@STEADY
@given(parts())
def test_the_order_is_remote_first_and_breadth_first_within(part):
    edges, remote = part
    order = visit_order(edges, remote)
    assert sorted(order.tolist()) == list(range(len(remote)))
    assert sorted(remote[order], reverse=True) == remote[order].tolist()
    component, depth = components_and_depths(edges, len(remote))
    for wanted in (True, False):
        visits = [(component[row], depth[row]) for row in order if remote[row] == wanted]
        assert visits == sorted(visits)


@STEADY
@given(st.integers(1, 100), st.integers(1, 120))
def test_bins_are_all_vertices_once_and_not_too_large(vertices, at_most):
    bins = pack_bins(vertices, at_most)
    assert [each for span in bins for each in range(span.start, span.stop)] == list(range(vertices))
    sizes = [span.stop - span.start for span in bins]
    assert max(sizes) <= at_most
    assert min(sizes) >= 1
    assert len(set(sizes[:-1])) <= 1
    assert len(bins) >= min(2, vertices)


def test_a_bin_takes_half_of_the_memory():
    options = BinOptions(memory=8000)
    assert vertices_per_bin(options, 60, 40) == 10
    assert vertices_per_bin(options, 16, 4) == 50
    assert vertices_per_bin(BinOptions(memory=1), 60, 40) == 1
    assert 1000 <= vertices_per_bin(BinOptions(), 100, 16) < 1100


def test_a_worker_computes_in_the_order_in_which_its_schedule_sends():
    data = load_dataset("digits")
    assignment = np.random.default_rng(3).integers(0, 3, data.vertices).astype(np.int32)
    assignment[:900] = 0
    schedules = binned_schedules(data.graph, assignment, 3)
    for part, schedule in zip(partition_dataset(data, assignment), schedules, strict=True):
        position = np.argsort(local_order(part).numpy())
        sent = position[schedule.forward.send.column]
        for start, end in pairwise(schedule.forward.out_indptr):
            assert np.all(np.diff(sent[start:end]) > 0)
        # Backward a sum is there when its last row is; the last one is computed first.
        back = schedule.backward
        last = np.minimum.reduceat(position[back.send.column], back.send.indptr[:-1])
        for start, end in pairwise(back.out_indptr):
            assert np.all(np.diff(last[start:end]) <= 0)
