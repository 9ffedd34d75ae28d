"""Simulations need a compiler; models are compiled once for all tests."""

import pytest

from switchgnn.lab.simulator.simulation import compiled_models
from switchgnn.planner import load_graph
from tests.support.levels import simulator_missing

MISSING = simulator_missing()


@pytest.fixture(scope="session", autouse=True)
def models():
    """The compiled models; compiling them is no part of any test's time."""
    if MISSING:
        pytest.skip(MISSING)
    return compiled_models()


@pytest.fixture(scope="session")
def graph():
    return load_graph("random:300:1500:1")
