# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Scenarios in which something was not as it must be, each the way a soak has found it.

A drawn scenario changes with the way in which it is drawn, so they are kept as files. The name of
a file says what has to hold.
"""

from pathlib import Path

import pytest

from switchgnn.lab.virtual.scenario import read_scenario

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.stem)
def test_it_holds(soaks, file):
    scenario = read_scenario(file)
    outcome = soaks(scenario.leaves, scenario.spines).run(scenario)
    assert outcome.violations == ()


def test_there_are_some():
    assert FOUND
