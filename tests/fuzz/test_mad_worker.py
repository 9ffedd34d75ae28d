# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker gone mad, on its own port, beside its own traffic.

Promised (invariant 6): what it says of others is refused, and whatever it says of its own
vertices changes only sums that they are part of.

Not promised: that the run ends. A feature with a tag ahead of the run makes its source's
real ones stale; a recall or fetch ahead takes a slot away for the rest of the session; a
`done` ahead moves the barrier on. All of these stop the run with an error or are repaired
by fetching. What `done` can do to the scale is in test_forgeries.py.
"""

import numpy as np
import pytest

from switchgnn.host.wire.header import LAST_ROUND, SESSION_MASK, Header, Kind
from switchgnn.p4src import load_program
from switchgnn.topologies import Target
from tests.fuzz.checks import check_the_counters
from tests.fuzz.field import field, needs_bmv2
from tests.fuzz.frames import IN_A_DATAGRAM, ON_A_WIRE, Generator
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
def test_taking_slots_away_costs_only_time(kind, tmp_path):
    """Its slots serve others in other blocks: they get their sums by fetching."""
    program = load_program()
    world = make_world(program.digest)
    with field(Target.EMBEDDED, world, program, tmp_path) as ground:
        team = Team(world, ground.links[:WORKERS], ground.addresses, session=ground.session)
        for (block, vertex), (worker, _) in world.sums.items():
            if worker == MAD:
                header = Header(
                    kind=kind,
                    src_id=min(world.owner),
                    dst_id=vertex,
                    block_id=block,
                    session=ground.session & SESSION_MASK,
                    round=AHEAD,
                )
                ground.links[MAD].send(ground.addresses(MAD).frame(header.pack(b"")))
        ground.echo(MAD, 1)
        team.play()
        team.check()
        assert sum(e.tally.sums_made for e in team.exchanges if e is not team.exchanges[MAD]) > 0


def depends_on(world, worker):
    """The vertices whose sums a worker's features are part of."""
    source, destination = world.graph.edges()
    home = world.plan.assignment
    remote = (home[source] == worker) & (home[destination] != worker)
    return set(np.unique(destination[remote]).tolist())
