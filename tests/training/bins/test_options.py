# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How a worker's vertices are ordered and cut into bins."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.host.direct import binned_schedules, visit_order
from switchgnn.training.bins import BinOptions, local_order, pack_bins, vertices_per_bin
from switchgnn.training.data.load import load_dataset
from switchgnn.training.errors import TrainingError
from switchgnn.training.partition import partition_dataset

STEADY = settings(deadline=None, derandomize=True, max_examples=80)


@st.composite
def parts(draw):
    """The edges within a worker, and which of its rows have remote neighbours."""
    rows = draw(st.integers(1, 25))
    ends = st.tuples(st.integers(0, rows - 1), st.integers(0, rows - 1))
    edges = np.array(draw(st.lists(ends, max_size=40)), dtype=np.int64).reshape(-1, 2).T
    remote = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    return edges, np.array(remote)


def components_and_depths(edges, rows):
    """The component of each row, and its distance from the component's first row."""
    near = [set() for _ in range(rows)]
    for u, v in edges.T.tolist():
        near[u].add(v)
        near[v].add(u)
    component, depth = [-1] * rows, [0] * rows
    for root in range(rows):
        if component[root] >= 0:
            continue
        component[root], frontier = root, [root]
        while frontier:
            following = []
            for u in frontier:
                for v in near[u]:
                    if component[v] < 0:
                        component[v], depth[v] = root, depth[u] + 1
                        following.append(v)
            frontier = following
    return component, depth


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
@given(parts())
def test_without_classes_a_vertex_follows_an_earlier_neighbour_of_its_own(part):
    """In a breadth-first search, children come in the order of their parents."""
    edges, remote = part
    order = visit_order(edges, np.zeros_like(remote)).tolist()
    place = {row: number for number, row in enumerate(order)}
    _, depth = components_and_depths(edges, len(order))
    near = {row: set() for row in order}
    for u, v in edges.T.tolist():
        near[u].add(v)
        near[v].add(u)
    parents = [
        min(place[v] for v in near[row] if depth[v] == depth[row] - 1)
        for row in order
        if depth[row]
    ]
    assert parents == sorted(parents)


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
    with pytest.raises(TrainingError, match="memory"):
        BinOptions(memory=0)


def test_a_worker_computes_in_the_order_in_which_its_schedule_sends():
    data = load_dataset("digits")
    assignment = np.random.default_rng(3).integers(0, 3, data.vertices).astype(np.int32)
    assignment[:900] = 0
    schedules = binned_schedules(data.graph, assignment, 3)
    for part, schedule in zip(partition_dataset(data, assignment), schedules, strict=True):
        place = np.argsort(local_order(part).numpy())
        sent = place[schedule.forward.send.column]
        for start, end in pairwise(schedule.forward.out_indptr):
            assert np.all(np.diff(sent[start:end]) > 0)
        # Backward a sum is there when its last row is; the last one is computed first.
        back = schedule.backward
        last = np.minimum.reduceat(place[back.send.column], back.send.indptr[:-1])
        for start, end in pairwise(back.out_indptr):
            assert np.all(np.diff(last[start:end]) <= 0)
