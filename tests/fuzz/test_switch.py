# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of a stranger at the switch, in the middle of a run.

The stranger has a port of its own: nothing that it sends may change a sum or hold up the
run, and every frame is counted under one outcome.
"""

import pytest

from switchgnn.lab.virtual.byzantine import ON_A_WIRE
from switchgnn.p4src import load_program
from switchgnn.topologies import Target
from tests.fuzz.attacker import Attacker
from tests.fuzz.checks import check_the_counters
from tests.fuzz.field import STRANGER, field, needs_bmv2
from tests.fuzz.frames import IN_A_DATAGRAM, Generator
from tests.fuzz.team import Team
from tests.fuzz.world import SCALE, WORKERS, make_world

AT_THE_EMBEDDED_SWITCH = 1_000_000 if SCALE > 1 else 50_000
AT_BMV2 = 20_000 * SCALE


@pytest.mark.timeout(300 * SCALE)
@pytest.mark.parametrize(
    ("target", "frames", "sizes"),
    [
        pytest.param(Target.EMBEDDED, AT_THE_EMBEDDED_SWITCH, (0, IN_A_DATAGRAM), id="embedded"),
        pytest.param(Target.BMV2, AT_BMV2, (14, ON_A_WIRE), id="bmv2", marks=needs_bmv2),
    ],
)
def test_a_stranger_changes_nothing(target, frames, sizes, tmp_path):
    program = load_program()
    world = make_world(program.digest)
    with field(target, world, program, tmp_path) as ground:
        generator = Generator(
            world,
            seed=1,
            source=ground.mac(STRANGER),
            target=world.network.switch.mac,
            shortest=sizes[0],
            longest=sizes[1],
        )
        team = Team(world, ground.links[:WORKERS], ground.addresses, session=ground.session)
        attacker = Attacker(
            ground.links[STRANGER],
            ground.ears[STRANGER],
            ground.mac(STRANGER),
            generator.shots(frames),
            ground.session,
            lambda: team.round,
        )
        attacker.start()
        while attacker.is_alive() or team.round < 2:
            team.play()
            team.check()
        assert attacker.error is None
        assert attacker.sent >= frames
        check_the_counters(ground, team)
        assert ground.switch.exit_code() is None
