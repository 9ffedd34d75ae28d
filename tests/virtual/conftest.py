"""A soak whose programs are compiled once for all tests of a process."""

import pytest

from tests.simulation.soak import Soak


@pytest.fixture(scope="session")
def soak():
    return Soak()
