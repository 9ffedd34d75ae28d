# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The search for the smallest scenario that fails in the same way."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from switchgnn.base.errors import SwitchGNNError
from switchgnn.virtual.run import Outcome
from switchgnn.virtual.scenario.scenario import Rates, Scenario
from switchgnn.virtual.shrink.fewest import fewest
from switchgnn.virtual.shrink.reductions import REDUCTIONS, Reduction, lower_rates, sooner

# Where faults are drawn, a smaller scenario has others: it gets more chances with other seeds, this
# many at most, and no more than have this many frames together, or as many as the known one.
_MOST_CHANCES, _FRAMES = 40, 1_500


@dataclass(frozen=True)
class Budget:
    """What a search may take.

    Attributes:
        runs: how many runs.
        goes_on: asked in front of each; when it says no the search ends.
    """

    runs: int
    goes_on: Callable[[], bool]


@dataclass(frozen=True)
class Shrunk:
    """What a search has come to.

    Attributes:
        scenario: the smallest one that fails.
        outcome: what comes of it.
        name: the invariant that does not hold.
        runs: how many runs that took.
        least: whether nothing more can be taken away; False: the budget was used up.
    """

    scenario: Scenario
    outcome: Outcome
    name: str
    runs: int
    least: bool


def shrink(
    scenario: Scenario, name: str, run: Callable[[Scenario], Outcome], budget: Budget
) -> Shrunk | None:
    """Make a scenario that fails as small as it can be.

    Args:
        scenario: it fails.
        name: the invariant that does not hold.
        run: lets a scenario happen.
        budget: what that may take.

    Returns:
        The smallest that was found; None if none failed, not even the first.
    """
    search = _Search(name, run, budget)
    least = False
    try:
        if not search.fails(scenario):
            return None
        while not least:
            before = search.least
            _sweep(search)
            least = search.least == before
    except _OverError:
        pass
    if search.least is None or search.outcome is None:
        return None
    return Shrunk(search.least, search.outcome, name, search.runs, least)


class _OverError(Exception):
    """The budget is used up."""


class _Search:
    """Runs scenarios, each once, and knows the last one that failed.

    Args:
        name: the invariant that must not hold.
        run: lets a scenario happen.
        budget: what that may take.

    Attributes:
        least: the last scenario that failed.
        outcome: what came of it.
        runs: how many runs there were.
        frames: how many frames went over lines in them.
    """

    def __init__(self, name: str, run: Callable[[Scenario], Outcome], budget: Budget) -> None:
        self.least: Scenario | None = None
        self.outcome: Outcome | None = None
        self.runs = self.frames = 0
        self._name = name
        self._run = run
        self._budget = budget
        self._known: dict[Scenario, bool] = {}

    def fails(self, scenario: Scenario) -> bool:
        """Tell whether a scenario fails in the same way.

        Raises:
            _OverError: that would take more than the budget.
        """
        if scenario not in self._known:
            if self.runs >= self._budget.runs or not self._budget.goes_on():
                raise _OverError
            self._known[scenario] = self._try(scenario)
        return self._known[scenario]

    def _try(self, scenario: Scenario) -> bool:
        self.runs += 1
        try:
            outcome = self._run(scenario)
        except SwitchGNNError:
            # Such as a graph with fewer vertices than workers.
            return False
        self.frames += outcome.frames
        if all(violation.name != self._name for violation in outcome.violations):
            return False
        self.least, self.outcome = scenario, outcome
        return True


def _sweep(search: _Search) -> None:
    """Try all that may be smaller once, then take single faults in place of rates."""
    least = _fewest_incidents(search)
    for reduction in REDUCTIONS:
        least = _reduce(search, least, reduction)
    if search.outcome is not None and _has_rates(least):
        told = _without_rates(least, search.outcome)
        if search.fails(told):
            least = told
    fewest(least.faults, lambda faults: search.fails(replace(least, faults=faults)))


def _fewest_incidents(search: _Search) -> Scenario:
    least = search.least
    if least is None:
        raise _OverError
    incidents = fewest(least.incidents, lambda rest: search.fails(replace(least, incidents=rest)))
    return replace(least, incidents=incidents)


def _reduce(search: _Search, scenario: Scenario, reduction: Reduction) -> Scenario:
    """Take the first smaller scenario that fails, as long as there is one."""
    found: Scenario | None = scenario
    while found is not None:
        scenario = found
        drawn = _has_rates(scenario) and reduction is not lower_rates
        tries = (_try(search, scenario, smaller, drawn=drawn) for smaller in reduction(scenario))
        found = next((some for some in tries if some is not None), None)
    return scenario


def _try(search: _Search, scenario: Scenario, smaller: Scenario, *, drawn: bool) -> Scenario | None:
    """Return a smaller scenario, or one much like it, if it fails."""
    alike = [smaller]
    if smaller.incidents and smaller.incidents == scenario.incidents:
        alike.append(sooner(smaller))
    most = search.frames + max(_FRAMES, search.outcome.frames if search.outcome else 0)
    for chance in range(_MOST_CHANCES if drawn else 1):
        for one in alike:
            with_seed = replace(one, seed=chance - 1) if chance else one
            if search.fails(with_seed):
                return with_seed
        if search.frames >= most:
            break
    return None


def _has_rates(scenario: Scenario) -> bool:
    return next(lower_rates(scenario), None) is not None


def _without_rates(scenario: Scenario, outcome: Outcome) -> Scenario:
    """Return a scenario in which what was drawn is told."""
    names = (each.name for each in fields(scenario))
    rates = (name for name in names if isinstance(getattr(scenario, name), Rates))
    silent: dict[str, Any] = dict.fromkeys(rates, Rates())
    return replace(scenario, **silent, faults=outcome.each_fault)
