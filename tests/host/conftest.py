"""The graph of most tests."""

import pytest

from switchgnn.planner.graphs.load import load_graph


@pytest.fixture(scope="module")
def graph():
    return load_graph("karate")
