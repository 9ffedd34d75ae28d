# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Drawn scenarios whose blocks have more groups of features than switches tell apart."""

from dataclasses import replace
from random import Random

from switchgnn.virtual.scenario.scenario import Scenario

# How many scenarios are so, of 1.
_SHARE = 1 / 10
# Nearly every vertex has a neighbour on each of the others, and all their sums are in few blocks.
_GRAPH, _GRAPHS, _SLOTS = "random:240:1600", 4, 256
# Groups are half a window, and one that waits alone does not hold up the others.
_WINDOWS = (2, 2, 4)
# Each of these blocks has as many frames as ten others.
_ROUNDS = 2


def with_many_groups(scenario: Scenario) -> Scenario:
    """Return a scenario, now and then with blocks of many small groups; its seed says when."""
    source = Random(f"groups/{scenario.seed}")  # noqa: S311
    if source.random() >= _SHARE:
        return scenario
    graph, window = f"{_GRAPH}:{source.randrange(_GRAPHS)}", source.choice(_WINDOWS)
    return in_time(replace(scenario, graph=graph, slots=_SLOTS, window=window))


def in_time(scenario: Scenario) -> Scenario:
    """Return a scenario with few exchanges if each of them has very many frames."""
    if not scenario.graph.startswith(_GRAPH):
        return scenario
    return replace(scenario, rounds=min(scenario.rounds, _ROUNDS), sessions=1)
