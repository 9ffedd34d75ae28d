# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Forward and backward rounds in turns, on a directed graph, with faults and without."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from switchgnn.host.innetwork.fixed_point import Foresight
from switchgnn.lab.virtual.checks import features as scales
from switchgnn.lab.virtual.draw import Wish
from switchgnn.lab.virtual.scenario import Rates
from switchgnn.lab.virtual.soak import Soak
from switchgnn.planner import BoundaryEdges
from switchgnn.planner.direction import Direction
from tests.virtual.matrix.scenes import STAR, on_each_topology
from tests.virtual.matrix.test_faults import NO_FAULTS, check_rates

VERTICES = 60
BAD = Rates(loss=0.05, duplicate=0.05, reorder=0.05)


@pytest.fixture
def graph(tmp_path):
    """Few edges go both ways."""
    dense = np.random.default_rng(8).random((VERTICES, VERTICES)) < 0.08
    np.fill_diagonal(dense, False)
    path = tmp_path / "directed.npz"
    save_npz(path, csr_matrix(dense.astype(np.int64)))
    return str(path)


def both_ways(scene, graph, **changes):
    return replace(scene, graph=graph, directions="both", slots=12, rounds=4, **changes)


@on_each_topology
@pytest.mark.parametrize("send", ["multicast", "cover"])
@pytest.mark.parametrize("rates", [NO_FAULTS, BAD], ids=["calm", "bad"])
def test_both_directions_in_turns_are_exact(star, scene, graph, send, rates):
    check_rates(star, both_ways(scene, graph, send=send), rates)


@on_each_topology
@pytest.mark.parametrize("rates", [NO_FAULTS, BAD], ids=["calm", "bad"])
def test_a_direction_that_was_not_foreseen_is_exchanged_as_ever(
    star, scene, graph, rates, monkeypatch
):
    """Switches let features of a block in, behind or before the one that then has its turn."""
    right = Foresight.next

    def wrong(foresight):
        foreseen = right(foresight)
        if foreseen is None:
            return None
        forward = foreseen.kind.direction is Direction.FORWARD
        direction = Direction.BACKWARD if forward else Direction.FORWARD
        announced.add(direction)
        return replace(foreseen, kind=replace(foreseen.kind, direction=direction))

    announced = set()
    monkeypatch.setattr(Foresight, "next", wrong)
    monkeypatch.setattr(scales, "foreseen", lambda past: [])
    check_rates(star, replace(both_ways(scene, graph), rounds=6), rates)
    assert announced == {*Direction}


def test_backward_blocks_with_forward_edges_are_noticed(monkeypatch, graph):
    """The planted mistake: whoever plans backward forgets to transpose."""
    monkeypatch.setattr(BoundaryEdges, "transposed", lambda edges: edges)
    with pytest.raises(AssertionError):
        check_rates(Soak(Wish()), both_ways(STAR, graph), NO_FAULTS)
