# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Forged frames at a switch: of a stranger, and of a Byzantine worker beside its own traffic.

A stranger has a port of its own: nothing that it sends may change a sum or hold up the run. A
Byzantine worker's lies about its own vertices change only sums that they are part of (invariant
6). Single refusals are tested in tests/ptf, leaves and spines in virtual time.
"""

import numpy as np
import pytest

from switchgnn.host.wire.header import FRAGMENT_BYTES, Header, Kind
from switchgnn.p4src import load_program
from switchgnn.topologies import Backend
from tests.fuzz.field import STRANGER, star
from tests.fuzz.frames import Generator
from tests.fuzz.links import OF_ALL_REDUCES, FiringLink, LyingLink, attack, forged_shots
from tests.fuzz.team import ALL, PATIENT, WORKERS, star_world
from tests.planted.planting import changed_program, cut_branches

BYZANTINE = WORKERS - 1
STRANGERS_FRAMES = 1_000_000 if ALL else 15_000
FRAMES = 200_000 if ALL else 8_000
LYING_ROUNDS = 60 if ALL else 6


@pytest.fixture(scope="module")
def one_field(tmp_path_factory):
    with star(star_world(), load_program(), tmp_path_factory.mktemp("star")) as made:
        yield made


@pytest.fixture
def field(one_field):
    one_field.renew()
    return one_field


# --- Any bytes


@pytest.mark.timeout(3000 if ALL else 300)
@pytest.mark.parametrize("end", [STRANGER, BYZANTINE], ids=["stranger", "worker"])
def test_forged_frames_change_nothing(field, end):
    """Every frame has one outcome, and only the workers' own frames are accepted."""
    mac, target = field.mac(end), field.world.network.switch.mac
    generator = Generator(field.world, 1 + end, source=mac, target=target)
    if end == STRANGER:
        shots = generator.shots(STRANGERS_FRAMES)
    else:
        shots = forged_shots(field, generator, BYZANTINE, FRAMES)
    firing = FiringLink(field, BYZANTINE, shots, end=end)
    team = attack(field, firing)
    team.check()
    assert firing.fired == len(shots)
    counted, workers = field.counted(), team.total()
    assert sum(counted.values()) == field.arrived()
    assert counted["AGGREGATED"] == workers["features_sent"]
    assert counted["DONE_COLLECTED"] == team.round * field.world.barriers * WORKERS
    assert counted["RECALLED"] == workers["recalls"]
    assert counted["FETCHED"] == workers["fetches"]
    assert counted["RESENT"] == workers["features_served"]
    assert counted["WRONG_PLAN"] == 0
    assert sum(counted[name] for name in (*OF_ALL_REDUCES, "PASSED_ON")) == 0
    assert field.switch.exit_code() is None


def without_ownership(program):
    """Cut off the branch that refuses other ports' features."""
    owner = ("_source_port", "_loop_port")
    return changed_program(program, "ownership", lambda compiled: cut_branches(compiled, owner))


def test_a_mistake_in_the_ownership_is_noticed(tmp_path, monkeypatch):
    # Compiling a program that is used once takes longer than its test.
    monkeypatch.setenv("SWITCHGNN_BACKEND", Backend.PYTHON.value)
    program = without_ownership(load_program())
    with star(star_world(program), program, tmp_path) as field:
        team = field.team()
        team.begin()
        # Else features that come before the start of the round would have to wait for it.
        field.accept_any_tag()
        forge_all_features(field)
        team.start(range(WORKERS))
        team.join()
        assert not team.errors, team.errors
        assert team.wrong_rows()


def forge_all_features(field):
    """Send other features in place of all that worker 0 sends first in round 1.

    The switch takes a port that is no worker's for worker 0 where it does not check.
    """
    part = field.world.plan.workers[0]
    first_block = part.send_source[part.send_indptr[0] : part.send_indptr[1]]
    lanes = np.random.default_rng(4).bytes(FRAGMENT_BYTES)
    for number, source in enumerate(first_block.tolist()):
        header = Header(
            kind=Kind.FEATURE,
            src_id=source,
            block_id=1,
            count=field.world.facts.counts[1, source],
            fragment=field.world.facts.words[0],
            feature_group=number // PATIENT.group_size,
            round=1,
        )
        field.send(STRANGER, header, lanes)
    field.echo(STRANGER)


# --- What a worker says of its own vertices


def test_its_lies_change_only_sums_of_its_own_features(field):
    lying = LyingLink(field, BYZANTINE, seed=3)
    team = field.team(lying)
    wrong = set()
    for _ in range(LYING_ROUNDS):
        team.play()
        assert not team.errors, team.errors
        wrong |= team.wrong_rows()
    assert lying.lies
    assert wrong, "no lie was believed: the test shows nothing"
    assert wrong <= field.world.depends_on(BYZANTINE)
    assert sum(field.counted().values()) == field.arrived()
