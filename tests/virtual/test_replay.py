# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A failure replays identically, as often as one likes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from switchgnn.base.native import find_compiler
from switchgnn.lab.virtual.scenario import read_scenario
from tests.support.speed import seconds_here
from tests.virtual.mistaken import sums_that_are_recalled_are_wrong

ROOT = Path(__file__).parent.parent.parent
FAILS = Path(__file__).parent / "diagrams" / "a_lost_sum.json"
TIMES = 25


@pytest.mark.whole
def test_a_failure_replays_a_hundred_times(star):
    """In two processes, whose strings have other hashes, on both back ends."""
    backends = ["python", "native"] if find_compiler() else ["python"]
    found = set()
    for chance in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.virtual.mistaken", str(FAILS), str(TIMES), *backends],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": chance},
            capture_output=True,
            text=True,
            timeout=seconds_here(60),
            check=True,
        )
        found |= {tuple(each) for each in json.loads(done.stdout)}
    assert len(found) == 1
    with sums_that_are_recalled_are_wrong():
        here = star.run(read_scenario(FAILS))
    assert found == {(here.digest, here.violations[0].what)}
