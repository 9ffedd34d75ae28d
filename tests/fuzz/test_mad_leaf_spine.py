# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker gone mad behind a leaf: what it forges ends there.

It says what leaves and spines say, and what workers of other leaves say. Promised: no sum
changes, every frame has one outcome in its leaf, and the spine sees nothing of it. What it may
say of its own vertices, and what that costs, is in test_mad_worker.py.
"""

import numpy as np
import pytest

from switchgnn.host.wire.header import SESSION_MASK, BarrierBody, Header, Kind
from switchgnn.lab.virtual.byzantine import Shot
from tests.fuzz.attacker import echo
from tests.fuzz.frames import IN_A_DATAGRAM
from tests.fuzz.leaf_spine_checks import complaints
from tests.fuzz.leaf_spine_field import LeafSpineField, leaf_spine_field
from tests.fuzz.leaf_spine_frames import LeafSpineGenerator
from tests.fuzz.mad_links import FiringLink, LyingLink, speaks_for
from tests.fuzz.team import BRIEF, PATIENT, Team
from tests.fuzz.test_mad_worker import AHEAD, depends_on, send_ahead
from tests.fuzz.world import SCALE

WORKERS = 4
MAD = WORKERS - 1
FRAMES = 20_000 * SCALE
VOLLEY = 16
LYING_ROUNDS = 3 * SCALE


def forged_shots(ground: LeafSpineField, count: int, seed: int = 1) -> list[Shot]:
    """Frames of the mad worker that must be refused."""
    generator = LeafSpineGenerator(
        ground.world,
        seed,
        partial_sums=ground.partial_sums(),
        workers=WORKERS,
        source=ground.mac(MAD),
        target=ground.world.network.switch.mac,
        longest=IN_A_DATAGRAM,
    )
    shots: list[Shot] = []
    while len(shots) < count:
        shot = generator.shot()
        if not speaks_for(ground.world, MAD, shot.aim(ground.session, 1)):
            shots.append(shot)
    return shots


def attack(ground: LeafSpineField, shots: list[Shot], pace=PATIENT) -> Team:
    """Exchange until all frames are sent, or a worker has an error or a wrong sum."""
    mad = FiringLink(
        ground.links[MAD], ground.links[MAD], ground.mac(MAD), shots, VOLLEY, ground.session
    )
    team = Team(
        ground.world,
        [*ground.links[:MAD], mad],
        ground.addresses,
        session=ground.session,
        pace=pace,
    )
    while not mad.empty:
        team.play()
        if team.errors or any(len(team.wrong_rows(worker)) for worker in range(WORKERS)):
            break
        mad.round = team.round
    return team


@pytest.mark.timeout(300 * SCALE)
@pytest.mark.parametrize("spines", [1, 2])
def test_what_it_forges_ends_at_its_leaf(tmp_path, spines):
    with leaf_spine_field(tmp_path, workers=WORKERS, spines=spines) as ground:
        team = attack(ground, forged_shots(ground, FRAMES // spines))
        assert complaints(ground, team) == []


@pytest.mark.timeout(120 * SCALE)
def test_its_lies_change_only_sums_of_its_own_features(tmp_path):
    """Also of sums that a spine completes."""
    with leaf_spine_field(tmp_path, workers=WORKERS) as ground:
        mad = LyingLink(ground.links[MAD], ground.world, MAD, ground.addresses(MAD), seed=3)
        team = Team(
            ground.world, [*ground.links[:MAD], mad], ground.addresses, session=ground.session
        )
        wrong: set[int] = set()
        for _ in range(LYING_ROUNDS):
            team.play()
            assert not team.errors, team.errors
            for worker in range(WORKERS):
                wrong |= set(team.wrong_rows(worker).tolist())
        assert wrong <= depends_on(ground.world, MAD)
        elsewhere = [v for v in wrong if ground.leaf_of(v) != ground.leaf_of_worker[MAD]]
        assert elsewhere, "no lie went through a spine: the test shows nothing"


@pytest.mark.parametrize("kind", [Kind.RECALL, Kind.FETCH])
def test_no_slot_of_a_spine_is_taken_away(tmp_path, kind):
    """The leaf does not forward tags ahead of the round."""
    with leaf_spine_field(tmp_path, workers=WORKERS) as ground:
        team = Team(ground.world, ground.links, ground.addresses, session=ground.session)
        refused = 0
        for (block, vertex), (worker, _) in ground.world.facts.sums.items():
            if worker == MAD and (block, vertex) in ground.completed_above():
                send_ahead(ground, kind, vertex, block=block, round_number=AHEAD)
                refused += 1
        echo(ground.links[MAD], ground.links[MAD], ground.mac(MAD), 1)
        team.play()
        team.check()
        counted = ground.counted()
        assert sum(each["WRONG_TURN"] for each in counted) == refused > 0


def test_a_done_ahead_at_a_leaf_is_refused(tmp_path):
    """It would count for all workers of the leaf, one of which has the largest feature."""
    with leaf_spine_field(tmp_path, workers=5) as ground:
        _, late, mad = ground.workers_of(0)
        team = Team(
            ground.world, ground.links, ground.addresses, session=ground.session, pace=BRIEF
        )
        team.begin()
        team.features[team.world.plan.workers[late].vertices] *= np.float32(16)
        report_done_ahead(ground, mad)
        team.start(range(5))
        team.join()
        team.check()
        assert sum(each["WRONG_TURN"] for each in ground.counted()) == 1


def report_done_ahead(ground: LeafSpineField, worker: int) -> None:
    body = BarrierBody(magnitude=0, plan=ground.world.facts.plan_id).pack()
    header = Header(
        kind=Kind.DONE,
        src_id=worker,
        is_ack=True,
        block_id=1,
        session=ground.session & SESSION_MASK,
        round=1,
    )
    link = ground.links[worker]
    link.send(ground.addresses(worker).frame(header.pack(body)))
    echo(link, link, ground.mac(worker), 1)
