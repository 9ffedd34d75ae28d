# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Points that need no ns-3: a process that prints a result at once."""

import json
import sys

from switchgnn.lab.experiments import SimulationPoint
from switchgnn.lab.experiments.runner import partition_file
from switchgnn.lab.experiments.table import RESULT_COLUMNS

VERSIONS = {"code": "1"}

# Notes that it ran, makes what stands for plan and partition, and prints what it is given.
PROGRAM = """
import os, sys
log, plan, partition, result, fails, code = sys.argv[1:]
os.makedirs(plan, exist_ok=True)
open(partition, "a").close()
with open(log, "a") as file:
    print("ran", file=file)
if fails:
    print("Error: " + fails, file=sys.stderr)
    sys.exit(int(code))
print(result)
"""


def point(**changes):
    parts = {
        "graph": "karate",
        "workers": 4,
        "system": "paper",
        "memory": 2_000,
        "order": None,
        "seed": 0,
        "layers": 4,
        "features": 32,
        "bandwidth": 100_000.0,
        "delay": 2.0,
        "congestion_control": True,
        "recirculation_rate": None,
        "background": 0.0,
        "buffer": None,
    }
    return SimulationPoint(**{**parts, **changes})


def result(**changes):
    """A result as a simulation prints it; each number is another one, but there are no bins."""
    numbers = {name: float(place) for place, name in enumerate(RESULT_COLUMNS, 1)}
    numbers["bins"] = 0
    numbers["leaf_spine_bytes"] = 1e6
    series = {"seconds": [0.0, 1e-3], "queue_bytes": [0, 5], "slots": [0, 1]}
    numbers |= {"memory_bytes": 1280, "slots": 10, "layers": 4}
    series |= {"sums": [0, 2], "overflowed": [0, 0]}
    return {**numbers, "series": series, **changes}


class FakeCommand:
    """Simulates points without a simulator.

    Attributes:
        runs: a word for each that ran so far.
        planned: of each that was started, whether its plan was there.
        parted: and whether its partition was.
    """

    def __init__(self, folder, results=None, fails=None, code=1):
        self.planned, self.parted = [], []
        self._log = folder / "log"
        self._results = results or {}
        self._fails = fails or {}
        self._code = str(code)

    @property
    def runs(self):
        return self._log.read_text().split() if self._log.exists() else []

    def __call__(self, one, plan):
        partition = plan.with_name(partition_file(one))
        self.planned.append(plan.exists())
        self.parted.append(partition.exists())
        words = json.dumps(self._results.get(one, result()))
        fails = self._fails.get(one, "")
        files = map(str, (self._log, plan, partition))
        return [sys.executable, "-S", "-c", PROGRAM, *files, words, fails, self._code]
