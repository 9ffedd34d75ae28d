# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Times and arrivals that the scenes over leaves and spines share."""

from switchgnn.lab.simulator import SPINE, LeafSpineOptions, NetworkOptions, run_simulation

# At 100 Gbit/s a byte takes 80 ps.
FEATURE, BARRIER, ACK, NOTICE = 188 * 80, 88 * 80, 60 * 80, 60 * 80
DELAY = 2_000_000
# DONE to the leaf, to the spine; ADVANCE to the leaf, to the worker.
OPENING = 4 * (BARRIER + DELAY)
# When the first features are at their leaf; and what a sum takes from there to a worker.
THERE = OPENING + FEATURE + DELAY
DOWN = FEATURE + DELAY
# The same over a spine.
ACROSS = 3 * (FEATURE + DELAY)


def simulated(setup, *, leaves=2, spines=1, completion=SPINE, opening=True, **options):
    """Simulate with a list of all arrivals."""
    return run_simulation(
        setup,
        NetworkOptions(**options),
        leaf_spine=LeafSpineOptions(leaves, spines, completion),
        opening=opening,
        trace=True,
    )


def at_workers(run, *kinds):
    """(picoseconds, worker, kind, row, count) of what arrives at workers."""
    return [
        (each.picoseconds, each.worker, each.kind, each.id, each.count)
        for each in run.trace
        if not each.at_switch and each.kind in kinds
    ]


def inside(run, workers, kind):
    """(picoseconds, link, row, count) of what arrives over links between switches."""
    return [
        (each.picoseconds, each.worker - workers, each.id, each.count)
        for each in run.trace
        if each.worker >= workers and each.kind == kind
    ]
