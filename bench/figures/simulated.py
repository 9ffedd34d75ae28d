"""Whole exchanges per minute of one core, in virtual time and under faults."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from bench.errors import BenchError
from bench.line import Goal, ResultLine
from bench.machine import lacks_compiler
from bench.measure import Samples, repeat
from bench.settings import Settings
from tests.simulation.draw import Wish
from tests.simulation.scenario import IncidentRates, Scenario
from tests.simulation.soak import Soak

NAME = "simulated"
_GOAL = 1_000.0
_BAD = IncidentRates(loss=0.02, duplicate=0.02, late=0.01, reorder=0.01, corrupt=0.01)
# 201 of its vertices are on the boundary of 4 workers.
_SCENARIO = Scenario(seed=0, graph="random:240:640:0", workers=4, slots=256, up=_BAD, down=_BAD)
_ROUNDS = (1, 8)
_SCENARIOS = 8
missing = lacks_compiler


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure sessions of one exchange, which install a plan each, and of several."""
    soak = Soak(Wish())
    for rounds in _ROUNDS:
        scenario = replace(_SCENARIO, rounds=rounds)
        soak.run(scenario)
        yield ResultLine(
            NAME,
            f"4 workers, 201 boundary vertices, {rounds} in a session",
            "exchanges/min",
            _samples(settings, soak, scenario),
            goal=Goal(least=_GOAL),
            note="of processor time of one core",
        )


def _samples(settings: Settings, soak: Soak, scenario: Scenario) -> Samples:
    return repeat(settings.pairs, "under faults", _measurement(soak, scenario))


def _measurement(soak: Soak, scenario: Scenario) -> Callable[[], float]:
    def once() -> float:
        begin, exchanges = time.process_time(), 0
        for seed in range(_SCENARIOS):
            outcome = soak.run(replace(scenario, seed=seed))
            if outcome.violations:
                raise BenchError(f"Seed {seed}: {outcome.violations[0].what}")
            exchanges += outcome.exchanges
        return 60 * exchanges / (time.process_time() - begin)

    return once
