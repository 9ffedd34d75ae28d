# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums equal those on the whole graph, and frames equal the prediction."""

from collections import Counter

import numpy as np
import pytest

from switchgnn.host.direct import Framing, copy_schedules, partial_schedules, rows_per_pair
from switchgnn.host.errors import FeatureError, TransportError
from switchgnn.host.pace import Pace
from switchgnn.host.registry import LocalTransport
from switchgnn.host.wire.header import Kind
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from tests.host.direct.crew import (
    BOTH,
    Hub,
    check_round,
    exact_sums,
    exchange,
    features_for,
    on_hub,
    parts_of,
    random_case,
    wrong,
)
from tests.host.direct.framings import sizes_of_frames

METHODS = [
    pytest.param(copy_schedules, id="host"),
    pytest.param(partial_schedules, id="host-partial"),
]


@pytest.mark.parametrize("make", METHODS)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize(
    ("width", "mtu"), [(1, 1500), (32, None), (33, 200), (33, None), (100, 1500), (100, 50)]
)
def test_sums_and_frames(make, directed, workers, width, mtu):
    graph, assignment = random_case(120, 600, workers, seed=workers + width, directed=directed)
    schedules = make(graph, assignment, workers)
    hub = Hub(workers)
    transports = on_hub(schedules, hub=hub, framing=Framing(mtu))
    calls = [(features_for(graph, width, seed), way, False) for seed in (1, 2) for way in BOTH]
    sums = exchange(transports, parts_of(assignment, workers), calls)
    for (features, way, _), got in zip(calls, sums, strict=True):
        assert wrong(graph, assignment, features, got, way) == 0
        assert got.dtype == np.float32
    sizes = Counter()
    for rows in rows_per_pair(schedules).ravel().tolist():
        sizes.update(len(calls) * sizes_of_frames(rows, width, mtu))
    predicted = sizes.total()
    kinds = hub.kinds()
    assert {size: count for (kind, size), count in kinds.items() if kind == Kind.FEATURE} == sizes
    assert all(size == 60 for kind, size in kinds if kind != Kind.FEATURE)
    assert sum(each.tally.data_resent for each in transports) == 0
    assert sum(each.tally.data_sent for each in transports) == predicted
    assert sum(each.traffic.frames_up for each in transports) == len(hub.sent)
    for each in transports:
        expected = [each.expected_traffic(width, way) for _, way, _ in calls]
        spare = each.traffic.frames_up - sum(one.frames_up for one in expected)
        assert each.traffic.bytes_up - sum(one.bytes_up for one in expected) == 60 * spare
        # Farewells, questions of a worker that had to wait, and answers to those of others.
        asked = sum(other.tally.questions for other in transports)
        assert 0 <= spare - each.tally.farewells <= each.tally.questions + asked


def test_host_frames_are_the_planners_prediction():
    graph, assignment = random_case(200, 900, 4, seed=3, directed=True)
    pairs = rows_per_pair(copy_schedules(graph, assignment, 4))
    sender, receiver = boundary_edges(graph, assignment).host_copies()
    expected = np.zeros((4, 4), dtype=np.int64)
    np.add.at(expected, (sender, receiver), 1)
    assert np.array_equal(pairs, expected)


@pytest.mark.parametrize("make", METHODS)
def test_acknowledgements_are_few(make):
    """One of 60 bytes for eight of 188, and a few for groups that are not full: under 5 %."""
    graph, assignment = random_case(1500, 12000, 4, seed=4, directed=False)
    transports = on_hub(make(graph, assignment, 4), framing=Framing(None))
    exchange(
        transports, parts_of(assignment, 4), [(features_for(graph, 33), Direction.FORWARD, False)]
    )
    data = 188 * sum(each.tally.data_sent for each in transports)
    acks = 60 * sum(each.tally.acks_sent for each in transports)
    assert acks < 0.05 * data


@pytest.mark.parametrize("window", [1, 2, 5, 16, 64])
def test_any_window_will_do(window):
    graph, assignment = random_case(60, 300, 3, seed=5, directed=False)
    features = features_for(graph, 40)
    transports = on_hub(
        copy_schedules(graph, assignment, 3), pace=Pace(window=window, patience=20.0)
    )
    check_round(transports, graph, assignment, features)


def test_an_empty_worker_and_no_boundary_at_all():
    graph, assignment = random_case(30, 100, 2, seed=6, directed=False)
    features = features_for(graph, 5)
    for owner in (np.zeros_like(assignment), assignment):
        transports = on_hub(copy_schedules(graph, owner, 3))
        check_round(transports, graph, owner, features)


def test_whoever_has_no_remote_neighbour_gets_zero():
    graph, assignment = random_case(30, 40, 2, seed=7, directed=False)
    features = features_for(graph, 5)
    transports = on_hub(partial_schedules(graph, assignment, 2))
    (sums,) = exchange(transports, parts_of(assignment, 2), [(features, Direction.FORWARD, False)])
    expected, _ = exact_sums(graph, assignment, features)
    lonely = ~expected.any(axis=1)
    assert lonely.any()
    assert not sums[lonely].any()


def test_backward_is_the_transpose():
    """<y, A x> = <Aᵀ y, x>, whatever x and y are."""
    graph, assignment = random_case(80, 400, 4, seed=8, directed=True)
    x, y = features_for(graph, 3, 1), features_for(graph, 3, 2)
    transports = on_hub(partial_schedules(graph, assignment, 4))
    forward, backward = exchange(
        transports,
        parts_of(assignment, 4),
        [(x, Direction.FORWARD, False), (y, Direction.BACKWARD, False)],
    )
    assert np.vdot(y, forward) == pytest.approx(np.vdot(backward, x), rel=1e-4)


def test_local_is_for_one_worker():
    rows = np.ones((5, 3), dtype=np.float32)
    transport = LocalTransport(5)
    assert not transport.aggregate(rows, Direction.FORWARD).any()
    transport.next_epoch()
    transport.close()
    assert sum(transport.traffic) == 0
    with pytest.raises(TransportError, match="for one worker, but there are 2"):
        LocalTransport(5, workers=2)


@pytest.mark.parametrize(
    "rows", [np.ones((4, 3), np.float32), np.ones((5, 0), np.float32), np.ones((5, 3), np.float64)]
)
def test_other_shapes_and_types_are_refused(rows):
    with pytest.raises(FeatureError, match=r"float32|shape"):
        LocalTransport(5).aggregate(rows, Direction.FORWARD)
