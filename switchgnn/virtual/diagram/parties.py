# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Who takes part in a run, from left to right, and between whom its lines are."""

from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.topologies.site import cable_name
from switchgnn.virtual.scenario.scenario import Scenario

CONTROLLER = "controller"


def parties_of(scenario: Scenario) -> tuple[str, ...]:
    """Return workers, switches and the controller; lines between neighbours are short."""
    if not scenario.leaves:
        workers = [f"w{number}" for number in range(scenario.workers)]
        half = len(workers) // 2
        return (*workers[:half], "s0", *workers[half:], CONTROLLER)
    layout = even_leaf_spine(scenario.workers, scenario.leaves, scenario.spines)
    left, right = [], []
    for leaf in range(scenario.leaves):
        behind = [f"w{number}" for number in layout.workers_of(leaf)]
        if leaf < scenario.leaves // 2:
            left += [*behind, f"s{leaf}"]
        else:
            right += [f"s{leaf}", *behind]
    spines = [f"s{scenario.leaves + number}" for number in range(scenario.spines)]
    return (*left, *spines, *right, CONTROLLER)


def ends_of_lines(scenario: Scenario) -> dict[str, tuple[str, str]]:
    """Return who sends and who receives on each line, by its name and direction."""
    places = [0] * scenario.workers
    if scenario.leaves:
        layout = even_leaf_spine(scenario.workers, scenario.leaves, scenario.spines)
        places = list(layout.leaf_of_worker)
    lower_and_upper = {
        f"w{worker}": (f"w{worker}", f"s{switch}") for worker, switch in enumerate(places)
    }
    for leaf in range(scenario.leaves):
        for spine in range(scenario.spines):
            ends = (f"s{leaf}", f"s{scenario.leaves + spine}")
            lower_and_upper[cable_name(leaf, spine)] = ends
    ends_of = {}
    for name, (lower, upper) in lower_and_upper.items():
        ends_of[f"{name}.up"] = (lower, upper)
        ends_of[f"{name}.down"] = (upper, lower)
    return ends_of
