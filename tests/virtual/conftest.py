# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Soaks whose programs are compiled once for all tests of a process."""

import pytest

from tests.simulation.draw import Wish
from tests.simulation.soak import Soak


@pytest.fixture(scope="session")
def soaks():
    made = {}

    def soak(leaves=0, spines=0):
        wish = Wish(leaves, spines)
        if wish not in made:
            made[wish] = Soak(wish)
        return made[wish]

    return soak


@pytest.fixture
def star(soaks):
    return soaks()
