"""Blocks of consecutive destinations keep what BlockStrategy promises, on any graph."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner import BLOCK_STRATEGIES
from switchgnn.planner.strategies import check_blocks
from tests.planner.helpers import STEADY, boundary_of, split_graphs


@STEADY
@given(split_graphs(), st.integers(1, 8))
def test_consecutive_blocks(drawn, slots):
    graph, _, assignment = drawn
    boundary = boundary_of(graph, assignment)
    block = BLOCK_STRATEGIES["consecutive"](boundary, slots, 0)
    check_blocks("consecutive", boundary, block, slots)
    assert len(set(block.tolist())) == -(-len(set(boundary.destination.tolist())) // slots)
    ascending = np.argsort(boundary.destination, kind="stable")
    assert np.all(np.diff(block[ascending]) >= 0)
