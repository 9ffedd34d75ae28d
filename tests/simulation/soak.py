"""Scenarios one after another, and the smallest one that fails."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from switchgnn.p4src import Program, load_program, load_tofino
from switchgnn.softswitch.native.build import Backend
from tests.simulation.checks.check import Check
from tests.simulation.draw import Wish, draw_scenario, scenarios
from tests.simulation.parts.engines import Programs
from tests.simulation.run import ScenarioOutcome, run_scenario
from tests.simulation.scenario import Scenario
from tests.simulation.subject import Subjects

DEFAULT_WISH = Wish()
# Simpler parts that may fail with another seed than the one a search kept, and how many to try.
_SIMPLEST: dict[str, Any] = {"incidents": (), "reduces": (), "sessions": 1, "rounds": 1}
_SEEDS = 64


class Soak:
    """Runs scenarios, which share programs and plans."""

    def __init__(self, wish: Wish = DEFAULT_WISH, program: Program | None = None) -> None:
        self.wish = wish
        self._programs: dict[str, Programs] = {}
        self._subjects = Subjects(program or (load_tofino() if wish.tofino else load_program()))

    def run(
        self, scenario: Scenario, *, beside: Sequence[Check] = (), keeps_trace: bool = False
    ) -> ScenarioOutcome:
        name = scenario.backend
        if name not in self._programs:
            self._programs[name] = Programs(Backend(name))
        return run_scenario(
            scenario, self._programs[name], self._subjects, beside=beside, keeps_trace=keeps_trace
        )

    def scenario(self, seed: int) -> Scenario:
        return draw_scenario(Random(seed), self.wish)

    def smallest_failure(self, seed: int, examples: int) -> Scenario | None:
        """Run scenarios that Hypothesis draws; return the smallest that fails as the first one."""
        name = ""

        def fails(scenario: Scenario) -> bool:
            nonlocal name
            names = [violation.name for violation in self.run(scenario).violations]
            name = name or next(iter(names), "")
            return name in names

        search = settings(
            max_examples=examples,
            phases=(Phase.generate, Phase.shrink),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        try:
            small = find(scenarios(self.wish), fails, settings=search, random=Random(seed))
        except NoSuchExample:
            return None
        # Hypothesis makes the seed small first, and keeps it from then on.
        for part, value in _SIMPLEST.items():
            simpler = replace(small, **{part: value})
            tries = (replace(simpler, seed=other) for other in range(_SEEDS))
            small = small if simpler == small else next(filter(fails, tries), small)
        return small
