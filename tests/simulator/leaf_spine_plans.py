# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans for the tests of leaves and spines, and what can be said of them without the models."""

import numpy as np
from hypothesis import strategies as st

from switchgnn.lab.simulator import NetworkOptions
from switchgnn.planner import build_plan

PROGRAM = "0" * 64
WORKERS = 7
KINDS = {
    "paper": {},
    "cover": {"blocks": "destination-cover", "send": "cover"},
    "one block": {"slots": 4_000, "order": "peel"},
    "narrow": {"slots": 8},
}
STRAWMAN = {"blocks": "strawman", "order": "random"}
# No marks: notices depend on the moment.
QUIET = NetworkOptions(ecn_threshold=None)


def planned(graph, workers=WORKERS, **kind):
    return build_plan(graph, **{"workers": workers, "slots": 64, "program": PROGRAM, **kind})


def leaf_of(worker, leaves, workers=WORKERS):
    """An equal share to each, in a row, the larger shares where the remainder falls."""
    starts = -(-np.arange(leaves) * workers // leaves)
    return np.searchsorted(starts, worker, side="right") - 1


def partial_sums(plan, leaves):
    """How many sums each worker awaits of which leaf: int64[W, leaves], none of its own."""
    workers = plan.manifest.workers
    pairs = np.zeros((workers, leaves), dtype=np.int64)
    for part in plan.workers:
        row = np.repeat(np.arange(len(part.receive_vertex)), np.diff(part.neighbour_indptr))
        leaf = leaf_of(part.neighbour_worker.astype(np.int64), leaves, workers)
        different = np.unique(np.column_stack([row, leaf]), axis=0)
        pairs[part.worker] = np.bincount(different[:, 1], minlength=leaves)
        pairs[part.worker, leaf_of(part.worker, leaves, workers)] = 0
    return pairs


def mixed(key):
    """SplitMix64, in whole numbers of Python."""
    mask = (1 << 64) - 1
    key = (key + 0x9E3779B97F4A7C15) & mask
    key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & mask
    key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & mask
    return key ^ (key >> 31)


def on_host_links(run):
    return [
        getattr(run, f"{what}_{way}")
        for what in ("frames", "bytes", "features")
        for way in ("up", "down")
    ] + [run.sums_down, run.sums]


NETWORKS = st.builds(
    NetworkOptions,
    bandwidth=st.sampled_from([10.0, 1e3, 1e5]),
    delay=st.sampled_from([0.0, 0.5, 50.0]),
    ecn_threshold=st.sampled_from([None, 0, 1, 5, 50]),
    window=st.sampled_from([1, 2, 3, 5, 16, 100]),
    congestion_control=st.booleans(),
    recirculation_rate=st.sampled_from([None, 1e5, 1e9]),
)
