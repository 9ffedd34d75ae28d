# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Draws scenarios, more of them like those that have met what is rare."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from switchgnn.virtual.coverage.coverage import Coverage
from switchgnn.virtual.run import Outcome
from switchgnn.virtual.scenario.change import changed
from switchgnn.virtual.scenario.draw import Wish, draw_scenario
from switchgnn.virtual.scenario.scenario import Scenario

# The share of scenarios that are changed ones, once there is something to change.
_CHANGED = 0.5
# For how many states the scenario is kept that has met it with the fewest frames.
_MOST_KEPT = 128
# What more than this share of all scenarios meet comes by itself.
_COMMON = 0.1


@dataclass(frozen=True)
class _Kept:
    """A scenario that has met something rare, and what it takes."""

    frames: int
    scenario: Scenario


class Guide:
    """Draws the scenarios of a soak; they follow from its seed alone, as their outcomes do.

    Args:
        seed: of the first scenario; each of the others has the next one.
        wish: what they have in common.

    Attributes:
        coverage: what those that have happened have met.
    """

    def __init__(self, seed: int, wish: Wish) -> None:
        self.coverage = Coverage()
        self._seed = seed
        self._wish = wish
        self._kept: dict[str, _Kept] = {}

    def scenarios(self) -> Iterator[Scenario]:
        """Yield scenarios without end; what came of one has to be learnt before the next one."""
        return map(self._draw, count(self._seed))

    def learn(self, scenario: Scenario, outcome: Outcome) -> None:
        """Take note of what a scenario has met."""
        self.coverage.add(outcome.states)
        for state in outcome.states:
            kept = self._kept.get(state)
            if kept is None or outcome.frames < kept.frames:
                self._kept[state] = _Kept(outcome.frames, scenario)
        self._forget_common_ones()

    def _forget_common_ones(self) -> None:
        met = self.coverage.met
        most = max(1.0, _COMMON * self.coverage.scenarios)
        rare = sorted((state for state in self._kept if met[state] <= most), key=met.__getitem__)
        self._kept = {state: self._kept[state] for state in rare[:_MOST_KEPT]}

    def _draw(self, seed: int) -> Scenario:
        source = Random(f"guide/{self._seed}/{seed}")  # noqa: S311
        if not self._kept or source.random() >= _CHANGED:
            return draw_scenario(seed, self._wish)
        states = list(self._kept)
        weights = [1.0 / self.coverage.met[state] for state in states]
        (state,) = source.choices(states, weights)
        return changed(self._kept[state].scenario, seed, self._wish)
