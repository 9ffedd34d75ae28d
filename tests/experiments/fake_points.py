"""Points that need no compiler: a process that prints a result at once."""

import json
import sys

from switchgnn.lab.experiments.point import SimulationPoint
from switchgnn.lab.experiments.table import RESULT_COLUMNS

VERSIONS = {"code": "1"}

# Notes that it ran, makes what stands for plan and partition, and prints what it is given.
PROGRAM = """
import os, sys
log, result, fails, *shared = sys.argv[1:]
for path in shared:
    if path.endswith(".npy"):
        open(path, "a").close()
    else:
        os.makedirs(path, exist_ok=True)
with open(log, "a") as file:
    print("ran", file=file)
if fails:
    sys.exit("Error: " + fails)
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
    numbers = {name: float(number) for number, name in enumerate(RESULT_COLUMNS, 1)}
    numbers["bins"] = 0
    numbers["leaf_spine_bytes"] = 1e6
    series = {"seconds": [0.0, 1e-3], "queue_bytes": [0, 5], "slots": [0, 1]}
    numbers |= {"memory_bytes": 1280, "slots": 10, "layers": 4}
    series |= {"sums": [0, 2], "overflowed": [0, 0]}
    return {**numbers, "series": series, **changes}


class FakeCommand:
    """Simulates points without a simulator."""

    def __init__(self, folder, results=None, fails=None):
        # Of each that was started, whether its plan and its partition were there.
        self.planned, self.parted = [], []
        self._log = folder / "log"
        self._results = results or {}
        self._fails = fails or {}

    @property
    def runs(self):
        """A word for each that ran so far."""
        return self._log.read_text().split() if self._log.exists() else []

    def __call__(self, one, work):
        shared = [work / name for name in one.shared]
        self.parted.append(shared[0].exists())
        self.planned.append(len(shared) > 1 and shared[1].exists())
        words = json.dumps(self._results.get(one, result()))
        fails = self._fails.get(one, "")
        return [
            sys.executable,
            "-S",
            "-c",
            PROGRAM,
            str(self._log),
            words,
            fails,
            *map(str, shared),
        ]
