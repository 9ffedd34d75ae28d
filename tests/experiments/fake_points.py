"""Points that need no compiler: a process that prints a result at once."""

import json
import sys
from dataclasses import asdict

from switchgnn.lab.experiments.paper import FIGURES
from switchgnn.lab.experiments.point import SimulationPoint
from switchgnn.lab.experiments.table import RESULT_COLUMNS

VERSIONS = {"code": "1"}
# An example, with the only heat map.
HEAT_MAP = "examples/figure/never_slower.py"
ALL = [*FIGURES, HEAT_MAP]

PROGRAM = """
import json, sys
log, answers = sys.argv[1:]
with open(answers) as file:
    known = json.load(file)
points = sys.stdin.read().splitlines()
with open(log, "a") as file:
    print(len(points), file=file)
for point in points:
    print(json.dumps(known.get(point, known["others"])))
"""


def point(**changes):
    usual = {"graph": "karate", "workers": 4, "system": "paper", "memory": 2_000, "features": 32}
    return SimulationPoint(**{**usual, **changes})


def result(**changes):
    """A result as a simulation prints it; each number is another one, but there are no bins."""
    numbers = {name: float(number) for number, name in enumerate(RESULT_COLUMNS, 1)}
    numbers["bins"] = 0
    numbers["leaf_spine_bytes"] = 1e6
    series = {"seconds": [0.0, 1e-3], "queue_bytes": [0, 5], "slots": [0, 1]}
    numbers |= {"memory_bytes": 1280, "slots": 10, "layers": 4}
    series |= {"sums": [0, 2], "overflowed": [0, 0], "link_bytes": [0, 100]}
    numbers |= {"workers": 4, "network": {"bandwidth": 100_000.0}}
    boundary = dict.fromkeys(("boundary_vertices", "copies", "largest_component"), 5)
    shares = dict.fromkeys(("copies_per_vertex", "connected_share", "first_fifth_share"), 0.5)
    neighbours = {"neighbours": [1, 3], "vertices_with_them": [2, 1]}
    training = {"vertices_per_second": 1e4, "seconds": [1.0, 1.0], "losses": [2.0, 1.0]}
    return {**(boundary | shares | neighbours | training), **numbers, "series": series, **changes}


class FakeProgram:
    """Simulates points without a simulator."""

    def __init__(self, folder, results=None, fails=None):
        self._log, answers = folder / "log", folder / "answers"
        known = {point: {"result": each} for point, each in (results or {}).items()}
        known |= {point: {"error": each} for point, each in (fails or {}).items()}
        told = {json.dumps(asdict(point)): each for point, each in known.items()}
        answers.write_text(json.dumps(told | {"others": {"result": result()}}))
        self.words = [sys.executable, "-S", "-c", PROGRAM, str(self._log), str(answers)]

    @property
    def groups(self):
        return sorted(map(int, self._log.read_text().split())) if self._log.exists() else []
