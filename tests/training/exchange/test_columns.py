"""The most important columns alone are exchanged: which they are, and what the others count."""

import numpy as np
import pytest
import torch

from switchgnn.planner import Direction, graph_from_edges
from switchgnn.training.base.compression import CompressionOptions, KeepBy
from switchgnn.training.exchange.columns import Chosen, Columns, number_kept
from switchgnn.training.exchange.gradients import GradientSums
from switchgnn.training.exchange.sums import LocalSum, NeighbourSum, RemoteSum
from tests.training.gathering import Gathering, in_threads
from tests.training.threads import losses, train_in_threads

WORKERS, WIDTH, KEPT = 3, 24, 8


@pytest.mark.parametrize(
    ("keep", "width", "number"),
    [
        *((0.5, 64, 32), (0.5, 63, 32), (0.51, 64, 40), (0.01, 64, 8), (1.0, 13, 13)),
        pytest.param(0.5, 10, 8, id="5 fill a frame no less than 8"),
        pytest.param(0.9, 10, 10, id="no more than there are"),
        pytest.param(0.55, 160, 88, id="0.55 * 160 is more than 88 as a float"),
    ],
)
def test_a_share_of_the_columns_fills_frames(keep, width, number):
    assert number_kept(keep, width) == number


class Graph:
    """A random graph on some workers, its sums in NumPy, and numbers for its rows."""

    def __init__(self):
        rng = np.random.default_rng(4)
        vertices = 30
        pair = rng.integers(0, vertices, (2, 120))
        self.graph = graph_from_edges(*pair, name="random", vertices=vertices, directed=True)
        self.assignment = rng.permutation(np.arange(vertices) % WORKERS)
        source, destination = self.graph.edges()
        self.local = np.zeros((vertices, vertices))
        self.remote = np.zeros((vertices, vertices))
        here = self.assignment[source] == self.assignment[destination]
        np.add.at(self.local, (destination[here], source[here]), 1)
        np.add.at(self.remote, (destination[~here], source[~here]), 1)
        self.rows = rng.standard_normal((vertices, WIDTH)).astype(np.float32)
        self.weights = rng.standard_normal((vertices, WIDTH)).astype(np.float32)

    def mine(self, worker):
        return np.flatnonzero(self.assignment == worker)

    def neighbours(self, worker, remote):
        mine = self.mine(worker)
        destination, source = np.nonzero(self.local[np.ix_(mine, mine)])
        times = self.local[np.ix_(mine, mine)][destination, source].astype(int)
        edges = np.repeat(np.stack([source, destination]), times, axis=1)
        return NeighbourSum(LocalSum(edges, (len(mine), len(mine))), remote)

    def passed(self, columns=None, *, needs_gradient=True, by=KeepBy.GRADIENT):
        """Return sums, gradients and scores of all workers, with some columns exchanged."""
        gathering = Gathering(self.graph, self.assignment)

        def work(worker):
            mine = self.mine(worker)
            with RemoteSum(gathering.transports[worker], keep=0.3) as remote:
                neighbours = self.neighbours(worker, remote)
                if columns is not None:
                    remote.columns._chosen[5, WIDTH] = Chosen(torch.from_numpy(columns), 6)
                remote.columns.scoring, remote.columns.by = True, by
                rows = torch.from_numpy(self.rows[mine]).requires_grad_(needs_gradient)
                sums = neighbours(rows, 5)
                (sums * torch.from_numpy(self.weights[mine])).sum().backward()
                (found,) = remote.columns.take().values()
            return mine, sums.detach().numpy(), rows.grad, found.numpy()

        results = in_threads(work, WORKERS, gathering.barrier)
        sums, gradients = np.zeros_like(self.rows), np.zeros_like(self.rows)
        for mine, sum_, gradient, _ in results:
            sums[mine] = sum_
            if needs_gradient:
                gradients[mine] = gradient
        return sums, gradients, sum(each[3] for each in results), gathering.transports


@pytest.fixture(scope="module")
def graph():
    return Graph()


def test_columns_that_are_left_out_count_as_zero_on_the_way(graph):
    kept = np.array([1, 4, 5, 11, 12, 20, 21, 23])
    sums, gradients, importance, ends = graph.passed(kept)
    mask = np.isin(np.arange(WIDTH), kept)
    assert sums == pytest.approx(
        (graph.local + graph.remote) @ (graph.rows * mask) + graph.local @ (graph.rows * ~mask),
        abs=1e-4,
    )
    back = graph.local.T @ graph.weights + (graph.remote.T @ graph.weights) * mask
    assert gradients == pytest.approx(back, abs=1e-4)
    assert importance == pytest.approx(abs(back * graph.rows).sum(axis=0), rel=1e-4)
    # They travel as a tensor of their own, both ways.
    both = [(6, direction, len(kept)) for direction in Direction]
    assert all(end.tensor_ids == both for end in ends)


def test_rows_without_a_gradient_are_scored_by_local_neighbours_without_an_exchange(graph):
    _, _, importance, ends = graph.passed(needs_gradient=False)
    back = graph.local.T @ graph.weights
    assert importance == pytest.approx(abs(back * graph.rows).sum(axis=0), rel=1e-4)
    assert all(end.tensor_ids == [(5, Direction.FORWARD, WIDTH)] for end in ends)


@pytest.mark.parametrize("needs_gradient", [True, False])
def test_samplers_score_by_norms(graph, needs_gradient):
    for by, scored, width in (
        (KeepBy.RANDOM, np.ones_like(graph.rows), KEPT),
        (KeepBy.FASTGCN, graph.rows, KEPT),
        (KeepBy.LADIES, graph.remote @ graph.rows, WIDTH),
    ):
        *_, scores, ends = graph.passed(np.arange(KEPT), needs_gradient=needs_gradient, by=by)
        assert scores == pytest.approx((scored**2).sum(axis=0), rel=1e-4)
        assert {sent[2] for end in ends for sent in end.tensor_ids} == {width}


@pytest.mark.parametrize("by", [KeepBy.FASTGCN, KeepBy.LADIES])
def test_columns_are_drawn_without_replacement_by_current_scores_or_by_the_first(by):
    columns, random = Columns(0.3, iter(range(9999)).__next__), np.random.default_rng(1)
    columns.by, drawn, expected, times = by, *np.zeros((2, WIDTH)), 2000
    for number in range(times):
        scores = np.arange(WIDTH)[:: -1 if number % 2 else 1] ** 2.0
        columns.choose({(0, WIDTH): torch.from_numpy(scores)}, GradientSums())
        drawn[columns.of(0, WIDTH).columns] += 1
        q = np.sort(scores) if by is KeepBy.FASTGCN else scores
        expected[random.choice(WIDTH, KEPT, replace=False, p=q / q.sum())] += 1
    assert drawn / times == pytest.approx(expected / times, abs=0.06)


def test_the_columns_with_the_highest_scores_are_chosen_in_order():
    columns = Columns(0.3, iter(range(10, 20)).__next__)
    scores = torch.arange(WIDTH, dtype=torch.float64)
    narrow = torch.ones(KEPT, dtype=torch.float64)
    assert columns.choose({(0, WIDTH): scores, (1, KEPT): narrow}, GradientSums()) == []
    assert columns.of(0, WIDTH).columns.tolist() == list(range(WIDTH - KEPT, WIDTH))
    assert columns.of(0, WIDTH).tensor_id == 10
    assert columns.of(1, KEPT) is None
    assert columns.of(1, WIDTH) is None
    # The same columns stay the same tensor, which a cache knows; others are another one.
    assert columns.choose({(0, WIDTH): 2 * scores}, GradientSums()) == []
    assert columns.of(0, WIDTH).tensor_id == 10
    assert columns.choose({(0, WIDTH): -scores}, GradientSums()) == [10]
    assert columns.of(0, WIDTH).columns.tolist() == list(range(KEPT))
    assert columns.of(0, WIDTH).tensor_id == 11


def test_fewer_columns_travel_after_the_first_choice(karate):
    ends, remotes = [], []
    results = train_in_threads(
        *(karate, 2),
        **{"model": "gcn", "hidden": 20, "epochs": 4, "precompute": False},
        **{"ends": ends, "remotes": remotes},
        compression=CompressionOptions(keep=0.5, columns_every=2),
    )
    widths = [width for _, width in ends[0].calls]
    # Features, 20 hidden units and two classes forward, and all but features backward.
    whole, half = [34, 20, 2, 2, 20], [24, 16, 2, 2, 16]
    # It exchanges rows of the first layer after their map, whose columns were never scored.
    evaluation = [20, 16, 2]
    assert widths == [*whole, *whole, *half, *half, *evaluation]
    reports = results[0][0]
    assert reports[-1].bytes_without == sum(4 * whole) + 42
    assert reports[-1].rows is None
    one, other = (remote.columns.scores for remote in remotes)
    assert one.keys() == {(0, 34), (1, 20), (2, 2)} == other.keys()


@pytest.mark.parametrize("by", KeepBy)
def test_other_columns_are_not_compared_with_those_that_were_cached(karate, by):
    found = []
    for cache in ("0", "off"):
        few = CompressionOptions(cache, keep=0.5, keep_by=by, columns_every=2)
        found.append(losses(train_in_threads(karate, 2, model="gcn", hidden=20, compression=few)))
    assert found[0] == found[1]


@pytest.mark.parametrize("by", KeepBy)
def test_columns_that_are_replaced_are_forgotten(karate, by):
    ends, remotes = [], []
    fewer = CompressionOptions("0", keep=0.5, keep_by=by, columns_every=1)
    train_in_threads(
        karate, 2, model="gcn", hidden=40, compression=fewer, ends=ends, remotes=remotes, epochs=12
    )
    assert ends[0].forgotten == ends[1].forgotten != []
    assert str(remotes[0].columns._chosen) == str(remotes[1].columns._chosen)
    for end, remote in zip(ends, remotes, strict=True):
        of_layers = set(remote.tensor_ids.values())
        now = {chosen.tensor_id for chosen in remote.columns._chosen.values()}
        assert {tensor_id for tensor_id, *_ in end.held} <= of_layers | now
