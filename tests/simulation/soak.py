# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Scenarios one after another, and their failures."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from switchgnn.base.errors import SwitchGNNError
from switchgnn.p4src import Program, load_program
from switchgnn.softswitch.native.build import Backend
from tests.simulation.draw import Wish, draw_scenario
from tests.simulation.parts.engines import Programs
from tests.simulation.run import ScenarioOutcome, run_scenario
from tests.simulation.scenario import Scenario, ScenarioError
from tests.simulation.scene import Made
from tests.simulation.subject import Subjects

EXACT, WRONG, FAILED = 0, 1, 2
# A soak ends after this number of failures, as more would show nothing new.
_MOST_FAILURES = 5
SUMS_EXACT, REDUCES_EXACT = "sums exact", "all-reduces exact"


@dataclass(frozen=True)
class SoakFailure:
    """A scenario that failed.

    Attributes:
        name: of the first violated invariant; empty if the scenario is impossible.
        what: one sentence.
        command: replays it.
    """

    seed: int
    name: str
    what: str
    command: str
    scenario: Scenario

    def to_dict(self) -> dict[str, str | int]:
        """Return it as plain data; the command contains the scenario."""
        return {"seed": self.seed, "name": self.name, "what": self.what, "command": self.command}


@dataclass
class SoakSums:
    """The totals of all scenarios so far.

    Attributes:
        gave_up: workers that ended with an error.
        faults: injected faults and incidents, by kind.
    """

    scenarios: int = 0
    exchanges: int = 0
    reduces: int = 0
    events: int = 0
    frames: int = 0
    virtual_seconds: float = 0.0
    gave_up: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[SoakFailure] = field(default_factory=list)
    _digest: Any = field(default_factory=hashlib.sha256)

    def add(self, outcome: ScenarioOutcome) -> None:
        """Add the outcome of a scenario."""
        self.scenarios += 1
        self.exchanges += outcome.exchanges
        self.reduces += outcome.reduces
        self.events += outcome.events
        self.frames += outcome.frames
        self.virtual_seconds += outcome.seconds
        self.gave_up += len(outcome.errors)
        self.faults.update(outcome.faults)
        self._digest.update(bytes.fromhex(outcome.digest))

    @property
    def trace_digest(self) -> str:
        """SHA-256 of the digests of all traces."""
        return str(self._digest.hexdigest())

    @property
    def exit_code(self) -> int:
        """The exit code of the program; a wrong sum counts more than another failure."""
        if any(failure.name in (SUMS_EXACT, REDUCES_EXACT) for failure in self.failures):
            return WRONG
        return FAILED if self.failures else EXACT

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, for JSON."""
        return {
            "scenarios": self.scenarios,
            "exchanges": self.exchanges,
            "reduces": self.reduces,
            "events": self.events,
            "frames": self.frames,
            "virtual_seconds": round(self.virtual_seconds, 9),
            "gave_up": self.gave_up,
            "faults": dict(sorted(self.faults.items())),
            "failures": [failure.to_dict() for failure in self.failures],
            "trace_digest": self.trace_digest,
        }


def _backend(name: str) -> Backend:
    """Return a back end by its name."""
    try:
        return Backend(name)
    except ValueError:
        known = " or ".join(backend.value for backend in Backend)
        raise ScenarioError(f"There is no back end {name!r}: choose {known}.") from None


class Soak:
    """Runs scenarios, which share programs and plans."""

    def __init__(self, wish: Wish, program: Program | None = None) -> None:
        self.wish = wish
        self._program = program or load_program()
        self._programs: dict[str, Programs] = {}
        self._subjects = Subjects(self._program)

    def run(self, scenario: Scenario, *, keeps_trace: bool = False) -> ScenarioOutcome:
        """Run one scenario."""
        name = scenario.backend
        if name not in self._programs:
            self._programs[name] = Programs(_backend(name))
        made = Made(self._program, self._programs[name])
        return run_scenario(scenario, made, self._subjects, keeps_trace=keeps_trace)

    def scenarios(self, seed: int) -> Iterator[Scenario]:
        """Yield the scenarios of a seed and those that follow it, without end."""
        return (draw_scenario(number, self.wish) for number in count(seed))

    def many(
        self,
        scenarios: Iterator[Scenario],
        command_of: Callable[[Scenario], str],
        goes_on: Callable[[SoakSums], bool],
    ) -> SoakSums:
        """Run scenarios until `goes_on` returns False or too many have failed."""
        sums = SoakSums()
        for scenario in scenarios:
            if not goes_on(sums) or len(sums.failures) >= _MOST_FAILURES:
                break
            try:
                outcome = self.run(scenario)
            except SwitchGNNError as error:
                sums.failures.append(self._failure(scenario, "", str(error), command_of))
                continue
            sums.add(outcome)
            if outcome.violations:
                first = outcome.violations[0]
                sums.failures.append(self._failure(scenario, first.name, first.what, command_of))
        return sums

    def _failure(
        self, scenario: Scenario, name: str, what: str, command_of: Callable[[Scenario], str]
    ) -> SoakFailure:
        return SoakFailure(scenario.seed, name, what, command_of(scenario), scenario)
