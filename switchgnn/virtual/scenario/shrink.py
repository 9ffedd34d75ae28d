# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a scenario smaller that shows the same."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from switchgnn.virtual.scenario.scenario import Rates, Scenario

# A smaller scenario draws otherwise, so it is tried with some seeds.
_SEEDS = 4
_GRAPHS = ("random:8:12:1", "random:20:30:1", "random:60:150:1", "random:120:240:1")
_ONE_FRAGMENT = 32


def shrink(scenario: Scenario, shows: Callable[[Scenario], bool], tries: int) -> Scenario:
    """Return the smallest scenario that was found to show what a scenario shows.

    Args:
        scenario: shows it.
        shows: lets a scenario happen, and tells whether it shows the same.
        tries: how many scenarios happen at most.

    Returns:
        A scenario that shows it, perhaps the one that was given.
    """
    left = tries
    smallest = scenario
    progress = True
    while progress and left > 0:
        progress = False
        for candidate in smaller(smallest):
            for seed in range(_SEEDS):
                if left <= 0:
                    return smallest
                left -= 1
                tried = replace(candidate, seed=candidate.seed if seed == 0 else seed)
                if shows(tried):
                    smallest, progress = tried, True
                    break
            if progress:
                break
    return smallest


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Yield scenarios that lack something of one, what is large first."""
    for place in range(len(scenario.incidents)):
        left = scenario.incidents[:place] + scenario.incidents[place + 1 :]
        yield replace(scenario, incidents=left)
    for way in ("up", "down", "cables"):
        yield from _calmer(scenario, way)
    plain = {"sessions": 1, "directions": "forward", "queue_rate": 0.0, "turns": 0, "jitter": 0}
    for name, value in {**plain, "send": "multicast", "slots": 256, "window": 16}.items():
        if getattr(scenario, name) != value:
            yield _changed(scenario, name, value)
    if scenario.rounds > 1:
        yield replace(scenario, rounds=scenario.rounds // 2)
    if scenario.width > _ONE_FRAGMENT:
        yield replace(scenario, width=_ONE_FRAGMENT)
    if scenario.workers > max(2, scenario.leaves):
        yield replace(scenario, workers=scenario.workers - 1)
    for graph in _GRAPHS:
        if graph == scenario.graph:
            break
        yield replace(scenario, graph=graph)


def _calmer(scenario: Scenario, way: str) -> Iterator[Scenario]:
    rates = getattr(scenario, way)
    if rates == Rates():
        return
    yield _changed(scenario, way, Rates())
    for each in fields(Rates):
        if getattr(rates, each.name):
            yield _changed(scenario, way, replace(rates, **{each.name: 0.0}))


def _changed(scenario: Scenario, name: str, value: Any) -> Scenario:  # noqa: ANN401  of the field
    return replace(scenario, **{name: value})
