# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What must hold after every attack of a worker on leaves and a spine."""

from dataclasses import asdict

from tests.fuzz.leaf_spine_field import Counts, LeafSpineField
from tests.fuzz.team import Team
from tests.fuzz.world import FRAGMENTS

# Outcomes of frames that a spine refuses and no leaf forwards.
_REFUSED = (
    "WRONG_PORT",
    "UNKNOWN_VERTEX",
    "UNKNOWN_BLOCK",
    "WRONG_COUNT",
    "WRONG_PLAN",
    "MALFORMED",
    "UNKNOWN_KIND",
)
# Requests of workers that a leaf may forward.
_ASKED = {
    "RECALLED": "recalls",
    "FETCHED": "fetches",
    "RESENT": "features_served",
    "NOTICED": "notices",
}


def complaints(ground: LeafSpineField, team: Team) -> list[str]:
    """Wrong sums, frames without an outcome, and forged frames that were accepted."""
    if team.errors:
        return [f"worker {worker}: {error}" for worker, error in team.errors.items()]
    found = [
        f"worker {worker}: the sums of {wrong} differ"
        for worker in range(ground.workers)
        if (wrong := team.wrong_rows(worker).tolist())
    ]
    counted, arrived = ground.counted(), ground.arrived()
    for switch, (counts, frames) in enumerate(zip(counted, arrived, strict=True)):
        if sum(counts.values()) != frames:
            found.append(f"switch {switch} counts {sum(counts.values())} of {frames} frames")
    for leaf in range(ground.leaves):
        found += _complaints_of_leaf(ground, team, leaf, counted[leaf])
    for spine in counted[ground.leaves :]:
        found += [f"the spine counts {name}" for name in _REFUSED if spine[name]]
    return found + _complaints_of_spines(ground, team, counted[ground.leaves :])


def _complaints_of_leaf(ground: LeafSpineField, team: Team, leaf: int, counts: Counts) -> list[str]:
    own = ground.workers_of(leaf)
    sent = sum(team.exchanges[worker].tally.features_sent for worker in own)
    right = {
        "AGGREGATED": sent,
        "DONE_COLLECTED": team.round * ground.barriers() * len(own),
        "NOTICED": sum(team.exchanges[worker].tally.notices for worker in own),
        "WRONG_PLAN": 0,
    }
    return [
        f"leaf {leaf} counts {name} {counts[name]} times, not {count}"
        for name, count in right.items()
        if counts[name] != count
    ]


def _complaints_of_spines(ground: LeafSpineField, team: Team, spines: list[Counts]) -> list[str]:
    counts = {name: sum(spine[name] for spine in spines) for name in spines[0]}
    parts = team.round * FRAGMENTS * len(ground.partial_sums())
    done = team.round * ground.barriers() * ground.leaves
    found = []
    if counts["AGGREGATED"] > parts:
        found.append(f"spines take {counts['AGGREGATED']} partial sums, not {parts}")
    if counts["DONE_COLLECTED"] != done:
        found.append(f"the spine collects {counts['DONE_COLLECTED']} reports, not {done}")
    tallies = [asdict(exchange.tally) for exchange in team.exchanges]
    for outcome, name in _ASKED.items():
        asked = sum(tally[name] for tally in tallies)
        if counts[outcome] > asked:
            found.append(f"spines count {outcome} {counts[outcome]} times, {asked} were asked for")
    return found
