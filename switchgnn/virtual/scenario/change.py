# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Scenarios much like another one: a few things are changed, the rest stays."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from switchgnn.virtual.scenario.draw import Wish, draw_scenario
from switchgnn.virtual.scenario.many_groups import in_time
from switchgnn.virtual.scenario.scenario import Incident, Scenario

# What may be taken from another scenario, each line together: rates and durations of incidents are
# drawn for a patience, and incidents for a number of workers.
_TOGETHER = (
    ("graph",),
    ("send",),
    ("directions",),
    ("lanes", "slots", "width"),
    ("rounds", "surges"),
    ("sessions",),
    ("window",),
    ("queue_depth", "queue_rate"),
    ("turns",),
    ("latency", "jitter"),
    ("patience", "up", "down", "cables"),
    ("workers", "incidents", "differences", "other_plan"),
)
_MOST_CHANGES = 3
_MOST_INCIDENTS = 6


def changed(scenario: Scenario, seed: int, wish: Wish) -> Scenario:
    """Return a scenario like another one, of another seed and with up to three changes.

    Nothing is in it that `draw_scenario` does not draw, too.

    Args:
        scenario: what it is like.
        seed: its seed; the changes follow from it.
        wish: what was drawn for.

    Returns:
        The scenario.
    """
    source = Random(f"change/{seed}")  # noqa: S311
    fresh = draw_scenario(seed, wish)
    like = replace(scenario, seed=seed)
    for _ in range(source.randint(0, _MOST_CHANGES)):
        change = source.choice(_CHANGES)
        like = change(like, fresh, source)
    # Where workers differ nothing else happens, so that it is known what must be said of it.
    alone = like.differences or like.other_plan
    return in_time(replace(like, incidents=()) if alone else like)


def _take_some(scenario: Scenario, fresh: Scenario, source: Random) -> Scenario:
    names = source.choice(_TOGETHER)
    patience = (fresh if "patience" in names else scenario).patience
    taken = replace(scenario, **{name: getattr(fresh, name) for name in names})
    drawn_for = (fresh if "incidents" in names else scenario).patience
    return replace(taken, incidents=_fit(taken.incidents, patience / drawn_for))


def _another_time(scenario: Scenario, _fresh: Scenario, source: Random) -> Scenario:
    """Let each incident happen up to twice as late or early."""
    later = [
        replace(incident, event=max(1, int(incident.event * 2 ** source.uniform(-1.0, 1.0))))
        for incident in scenario.incidents
    ]
    return replace(scenario, incidents=_in_order(later))


def _one_less(scenario: Scenario, _fresh: Scenario, source: Random) -> Scenario:
    if not scenario.incidents:
        return scenario
    rest = list(scenario.incidents)
    rest.pop(source.randrange(len(rest)))
    return replace(scenario, incidents=tuple(rest))


def _one_more(scenario: Scenario, fresh: Scenario, source: Random) -> Scenario:
    """Take one incident of the other scenario, if its workers are there."""
    if fresh.workers > scenario.workers or len(scenario.incidents) >= _MOST_INCIDENTS:
        return scenario
    more = _fit(fresh.incidents, scenario.patience / fresh.patience)
    some = [source.choice(more)] if more else []
    return replace(scenario, incidents=_in_order([*scenario.incidents, *some]))


def _fit(incidents: tuple[Incident, ...], share: float) -> tuple[Incident, ...]:
    """Shorten incidents for a patience that is shorter by a share."""
    if share >= 1.0:
        return incidents
    return tuple(replace(each, seconds=round(each.seconds * share, 3)) for each in incidents)


def _in_order(incidents: list[Incident]) -> tuple[Incident, ...]:
    return tuple(sorted(incidents, key=lambda incident: incident.event))


_Change = Callable[[Scenario, Scenario, Random], Scenario]
_CHANGES: tuple[_Change, ...] = (
    _take_some,
    _take_some,
    _take_some,
    _another_time,
    _one_more,
    _one_less,
)
