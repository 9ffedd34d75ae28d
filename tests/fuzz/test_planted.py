# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The check of the sums fails when the switch does not compare owner and port."""

import numpy as np
import pytest

from switchgnn.host.wire.header import FRAGMENT_BYTES, SESSION_MASK, Header, Kind
from switchgnn.p4src import load_program
from switchgnn.topologies import Target
from tests.fuzz.field import STRANGER, field
from tests.fuzz.team import PATIENT, Team
from tests.fuzz.world import WORKERS, make_world
from tests.planted.planting import changed_program, cut_branches

# A switch takes a port that is no worker's for worker 0 where it does not check.
VICTIM = 0


def unchanged(program):
    return program


def without_ownership(program):
    """Cut off the branch that refuses other ports' features."""
    owner = ("_source_port", "_loop_port")
    return changed_program(program, "ownership", lambda compiled: cut_branches(compiled, owner))


@pytest.mark.usefixtures("not_compiled")
@pytest.mark.parametrize("mistake", [without_ownership, unchanged])
def test_the_check_notices_forged_features(mistake, tmp_path):
    program = mistake(load_program())
    world = make_world(program.digest)
    with field(Target.EMBEDDED, world, program, tmp_path) as ground:
        team = Team(world, ground.links[:WORKERS], ground.addresses, session=ground.session)
        team.begin()
        ground.forget_turns()  # which features that come before the opening would have to wait for
        forge_all_features(ground)
        team.start(range(WORKERS))
        team.join()
        assert not team.errors, team.errors
        wrong = sum(len(team.wrong_rows(worker)) for worker in range(WORKERS))
        assert (wrong == 0) == (mistake is unchanged)


def forge_all_features(ground):
    """Send other features in place of all that the victim sends first in round 1."""
    part = ground.world.plan.workers[VICTIM]
    first_block = part.send_source[part.send_indptr[0] : part.send_indptr[1]]
    lanes = np.random.default_rng(4).bytes(FRAGMENT_BYTES)
    addresses = ground.addresses(STRANGER)
    for place, source in enumerate(first_block.tolist()):
        header = Header(
            kind=Kind.FEATURE,
            src_id=source,
            block_id=1,
            count=ground.world.facts.counts[1, source],
            fragment=ground.world.facts.words[0],
            feature_group=place // PATIENT.group_size,
            session=ground.session & SESSION_MASK,
            round=1,
        )
        ground.links[STRANGER].send(addresses.frame(header.pack(lanes)))
    ground.echo(STRANGER, 1)
