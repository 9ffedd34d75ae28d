# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The matrix of faults on a leaf-spine: on cables between switches and on workers' links at once.

Each cell has other losses under each of its seeds; `make test-all` tries 20 of them.
"""

from contextlib import ExitStack

import pytest

from tests.recovery.test_faults import DUPLICATE, LOSS, REORDER
from tests.support.fabrics import Team
from tests.support.leaf_spine_fabrics import NO_FAULTS, leaf_spine_bed
from tests.support.markers import MININET_TARGETS, covering, full
from tests.support.seeds import seed_of, seeds

ROUNDS = 3
# Frames cross two more links than on a star: with the most losses they take long.
CELLS = [
    cell if cell.values[0] < max(LOSS) else pytest.param(*cell.values, marks=full, id=cell.id)
    for cell in covering(LOSS, DUPLICATE, REORDER)
]
# No frame is longer, so there were at least as many as the bytes say.
LONGEST_FRAME = 188


@pytest.fixture(scope="module", params=MININET_TARGETS)
def shared_bed(request, tmp_path_factory):
    with leaf_spine_bed(tmp_path_factory.mktemp("bed"), request.param, spines=2) as made:
        yield made


@pytest.fixture
def team(shared_bed):
    """Call it with faults to get a team on a new session; links are closed afterwards."""
    with ExitStack() as stack:

        def make(faults):
            shared_bed.disturb(NO_FAULTS)
            shared_bed.install()
            shared_bed.disturb(faults)
            return Team(shared_bed, stack, faults=faults)

        yield make


def on_cables(bed):
    """Faults and, at least, frames of all cables since they were set."""
    cables = bed.fabric.relay.counts().values()
    frames = sum(cable["up"] + cable["down"] for cable in cables) / LONGEST_FRAME
    return bed.fabric.cable_injected(), frames


def on_links(team):
    return team.injected(), sum(
        link.traffic.frames_up + link.traffic.frames_down for link in team.links
    )


@pytest.mark.parametrize("number", seeds(1))
@pytest.mark.parametrize(("loss", "duplicate", "reorder"), CELLS)
def test_every_sum_is_exact(shared_bed, team, loss, duplicate, reorder, number):
    seed = seed_of("leaf-spine", loss, duplicate, reorder, number)
    workers = team(f"loss={loss},duplicate={duplicate},reorder={reorder},corrupt=0.001,seed={seed}")
    wrong = workers.run(ROUNDS, seed=seed)
    assert not workers.errors, (workers.errors, workers.total())
    assert wrong == 0
    # The faults really happened, on either kind of links.
    for injected, frames in (on_cables(shared_bed), on_links(workers)):
        for name, rate in (("lost", loss), ("duplicated", duplicate), ("reordered", reorder)):
            assert injected[name] > 0 or rate * frames <= 20, (injected, frames)
            assert rate or not injected[name]


@pytest.mark.parametrize(
    "faults",
    [
        "cables.loss=0.2",
        "cables.up.loss=0.2",
        "cables.down.loss=0.2",
        "cables.duplicate=0.2",
        "cables.reorder=0.2",
        "cables.corrupt=0.05",
        "l1s0.loss=0.2",
        "cables.loss=0.1,cables.duplicate=0.1,cables.reorder=0.1,cables.corrupt=0.02",
    ],
)
def test_bad_cables(shared_bed, team, faults):
    """Workers' links are good."""
    workers = team(f"{faults},seed=5")
    assert workers.run(ROUNDS) == 0, (workers.errors, workers.total())
    assert sum(on_cables(shared_bed)[0].values()) > 0
    assert sum(on_links(workers)[0].values()) == 0


def test_without_faults_no_sum_is_made_by_hand(shared_bed, team):
    """Relays alone cost nothing."""
    workers = team(NO_FAULTS)
    assert workers.run(ROUNDS) == 0, workers.errors
    assert workers.total()["sums_made"] == 0
    assert sum(on_cables(shared_bed)[0].values()) == 0
