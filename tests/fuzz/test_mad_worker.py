# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker gone mad, on its own port, beside its own traffic.

Promised (invariant 6): what it says of others is refused, and whatever it says of its own
vertices changes only sums that they are part of.

Promised too: what it says ahead of the run is refused, so it takes no slot away and moves no
barrier. Not promised: that the run ends, as the others wait for it.
"""

import numpy as np
import pytest

from switchgnn.host.wire.header import LAST_ROUND, SESSION_MASK, Header, Kind
from switchgnn.lab.virtual.byzantine import ON_A_WIRE
from switchgnn.p4src import load_program
from switchgnn.topologies import Target
from tests.fuzz.checks import check_the_counters
from tests.fuzz.field import field, needs_bmv2
from tests.fuzz.frames import IN_A_DATAGRAM, Generator
from tests.fuzz.mad_links import FiringLink, LyingLink, speaks_for
from tests.fuzz.team import Team
from tests.fuzz.world import SCALE, WORKERS, make_world

MAD = WORKERS - 1
FRAMES = 20_000 * SCALE
AHEAD = LAST_ROUND
LYING_ROUNDS = 6 * SCALE


@pytest.mark.timeout(300 * SCALE)
@pytest.mark.parametrize(
    ("target", "volley", "sizes"),
    [
        pytest.param(Target.EMBEDDED, 16, (0, IN_A_DATAGRAM), id="embedded"),
        # With the worker's own window of 16 a volley must fit BMv2's ring of about 30.
        pytest.param(Target.BMV2, 6, (14, ON_A_WIRE), id="bmv2", marks=needs_bmv2),
    ],
)
def test_what_it_says_of_others_is_refused(target, volley, sizes, tmp_path):
    program = load_program()
    world = make_world(program.digest)
    with field(target, world, program, tmp_path) as ground:
        generator = Generator(
            world,
            seed=2,
            source=ground.mac(MAD),
            target=world.network.switch.mac,
            shortest=sizes[0],
            longest=sizes[1],
        )
        shots = [
            shot
            for shot in generator.shots(FRAMES * 5 // 4)
            if not speaks_for(world, MAD, shot.aim(1, 1))
        ]
        assert len(shots) >= FRAMES
        mad = FiringLink(
            ground.links[MAD], ground.ears[MAD], ground.mac(MAD), shots, volley, ground.session
        )
        team = Team(world, [*ground.links[:MAD], mad], ground.addresses, session=ground.session)
        while not mad.empty:
            team.play()
            team.check()
            mad.round = team.round
        check_the_counters(ground, team)
        assert ground.switch.exit_code() is None


@pytest.mark.timeout(120 * SCALE)
def test_its_lies_change_only_sums_of_its_own_features(tmp_path):
    program = load_program()
    world = make_world(program.digest)
    with field(Target.EMBEDDED, world, program, tmp_path) as ground:
        mad = LyingLink(ground.links[MAD], world, MAD, ground.addresses(MAD), seed=3)
        team = Team(world, [*ground.links[:MAD], mad], ground.addresses, session=ground.session)
        spoilt = 0
        for _ in range(LYING_ROUNDS):
            team.play()
            assert not team.errors, team.errors
            wrong = {v for worker in range(WORKERS) for v in team.wrong_rows(worker).tolist()}
            assert wrong <= depends_on(world, MAD)
            spoilt += len(wrong)
        assert mad.lies
        assert spoilt, "no lie was believed: the test shows nothing"
        counted = ground.counted()
        assert sum(counted.values()) == ground.arrived() == ground.sent()


@pytest.mark.parametrize("kind", [Kind.RECALL, Kind.FETCH])
def test_no_slot_is_taken_away(kind, tmp_path):
    """In other blocks its slots serve other workers, whose sums it must not touch."""
    program = load_program()
    world = make_world(program.digest)
    with field(Target.EMBEDDED, world, program, tmp_path) as ground:
        team = Team(world, ground.links[:WORKERS], ground.addresses, session=ground.session)
        refused = 0
        for now in range(2):
            for round_number in (now + 1, now + 2, AHEAD):
                for (block, vertex), (worker, _) in world.facts.sums.items():
                    if worker == MAD:
                        send_ahead(ground, kind, vertex, block=block, round_number=round_number)
                        refused += 1
            ground.echo(MAD, now)
            team.play()
            team.check()
        assert ground.counted()["WRONG_TURN"] == refused > 0


def send_ahead(ground, kind, vertex, *, block, round_number):
    header = Header(
        kind=kind,
        src_id=min(ground.world.facts.owner),
        dst_id=vertex,
        block_id=block,
        session=ground.session & SESSION_MASK,
        round=round_number,
    )
    ground.links[MAD].send(ground.addresses(MAD).frame(header.pack(b"")))


def depends_on(world, worker):
    """The vertices whose sums include a worker's features."""
    source, destination = world.graph.edges()
    home = world.plan.assignment
    remote = (home[source] == worker) & (home[destination] != worker)
    return set(np.unique(destination[remote]).tolist())
