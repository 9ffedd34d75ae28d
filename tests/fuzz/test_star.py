# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Forged frames at a switch: of a stranger, and of a Byzantine worker beside its own traffic.

A stranger has a port of its own: nothing that it sends may change a sum or hold up the run.

A Byzantine worker (invariant 6): what it says of others is refused, and whatever it says of its
own vertices changes only sums that they are part of. What it says ahead of the run is refused,
so it takes no slot away and moves no barrier. The run may fail to end, as the others wait for it.
"""

import numpy as np
import pytest

from switchgnn.host.wire.header import (
    FRAGMENT_BYTES,
    LAST_ROUND,
    SESSION_MASK,
    BarrierBody,
    Header,
    Kind,
)
from switchgnn.p4src import load_program
from switchgnn.topologies import Backend
from tests.fuzz.field import STRANGER, star
from tests.fuzz.frames import Generator
from tests.fuzz.links import OF_ALL_REDUCES, FiringLink, LyingLink, attack, forged_shots
from tests.fuzz.team import ALL, BRIEF, PATIENT, WORKERS, star_world
from tests.planted.planting import changed_program, cut_branches
from tests.simulation.network import OFFSET_AT, VERSION_IHL_AT
from tests.support.markers import full
from tests.support.waiting import wait_until

VICTIM = 0
BYZANTINE = WORKERS - 1
STRANGERS_FRAMES = 1_000_000 if ALL else 15_000
FRAMES = 200_000 if ALL else 8_000
LYING_ROUNDS = 60 if ALL else 6
NAN = 0x7FC00000
MINUS_TINY = 0x80000001


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
    assert [sum(counted.values())] == field.arrived()
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
        # Else features that come before the opening would have to wait for it.
        field.accept_any_turn()
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


# --- Frames made on purpose, which random ones hit too rarely


def at(place, written):
    return lambda frame: frame[:place] + written + frame[place + len(written) :]


def in_vlan(identifier, ethertype="8100"):
    tag = bytes.fromhex(ethertype) + identifier.to_bytes(2, "big")
    return lambda frame: frame[:12] + tag + frame[12:]


# An IEEE 802.3 frame, with the type in an LLC/SNAP header.
def in_llc(frame):
    return frame[:12] + (len(frame) - 6).to_bytes(2, "big") + b"\xaa\xaa\3\0\0\0" + frame[12:]


DISGUISES = {
    "none": lambda frame: frame,
    # A last fragment at offset 8: its payload is no SwitchGNN header to the switch.
    "fragment": at(OFFSET_AT, b"\0\1"),
    "version of IPv6": at(VERSION_IHL_AT, b"\x65"),
    "options": at(VERSION_IHL_AT, b"\x46"),
    "priority tag": in_vlan(0),
    "VLAN 7": in_vlan(7),
    "service tag": in_vlan(0, "88a8"),
    "another type": at(12, b"\x08\x01"),
}
MORE_DISGUISES = {
    "old service tag": in_vlan(0, "9100"),
    "two tags": lambda frame: in_vlan(0)(in_vlan(0)(frame)),
    "LLC": in_llc,
    "too long": lambda frame: frame + bytes(40),
}


@pytest.mark.parametrize(
    "disguise",
    [
        *(pytest.param(each, id=name) for name, each in DISGUISES.items()),
        *(pytest.param(each, id=name, marks=full) for name, each in MORE_DISGUISES.items()),
    ],
)
def test_no_port_may_speak_for_the_switch(field, disguise):
    """A frame to a worker's address is forwarded, but must not be taken for the switch's."""
    team = field.team(pace=BRIEF)
    team.begin()
    team.start([VICTIM])
    wait_until(lambda: field.links[VICTIM].traffic.frames_up)
    macs = bytes.fromhex((field.mac(VICTIM) + field.mac(STRANGER)).replace(":", ""))
    for number, packet in enumerate(forged_answers(field)):
        frame = field.addresses(STRANGER).frame(packet)
        field.links[STRANGER].send(disguise(macs + frame[12:]))
        field.echo(STRANGER, number)
    team.start(range(1, WORKERS))
    team.join()
    team.check()


def forged_answers(field):
    """Packets as the switch sends them to the victim while it waits for round 1 to open."""
    facts = field.world.facts
    common = {"session": field.session & SESSION_MASK, "round": 1}
    body = BarrierBody(magnitude=0x3F000000, plan=facts.plan_id, round=1, workers=7).pack()
    lanes = np.random.default_rng(6).bytes(FRAGMENT_BYTES)
    for (block, vertex), (worker, count) in facts.sums.items():
        if worker == VICTIM:
            numbers = {"dst_id": vertex, "block_id": block, "count": count, **common}
            yield Header(kind=Kind.SUM, fragment=facts.words[0], **numbers).pack(lanes)
    yield Header(kind=Kind.ADVANCE, **common).pack(body)


@pytest.mark.parametrize("magnitude", [NAN, MINUS_TINY], ids=["nan", "negative"])
def test_an_impossible_magnitude_is_refused(field, magnitude):
    team = field.team(pace=BRIEF)
    team.begin()
    field.report_done(BYZANTINE, block=0, magnitude=magnitude)
    team.start(range(WORKERS))
    team.join()
    if not team.errors:
        team.check()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_done_ahead_does_not_split_the_scale(field, restarted):
    """It would open round 1 for each worker alone, with the features known by then."""
    team = field.team(pace=BRIEF)
    team.begin()
    team.features[team.world.plan.workers[VICTIM].vertices] /= np.float32(16)
    if restarted:
        # Such a switch accepts it; a worker that opens alone gets an impossible magnitude.
        field.accept_any_turn()
    field.report_done(BYZANTINE, block=1)
    team.start([VICTIM])
    if restarted:
        wait_until(lambda: team.errors or team.exchanges[VICTIM].counters.features_sent)
    team.start(range(1, WORKERS))
    team.join()
    if not (restarted and team.errors):
        team.check()
        assert field.counted()["WRONG_TAG"] == (not restarted)


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
    assert [sum(field.counted().values())] == field.arrived()


@pytest.mark.parametrize("kind", [Kind.RECALL, Kind.FETCH])
def test_no_slot_is_taken_away(field, kind):
    """In other blocks its slots serve other workers, whose sums it must not touch."""
    team, refused = field.team(), 0
    for now in range(2):
        for round_number in (now + 1, now + 2, LAST_ROUND):
            for (block, vertex), (worker, _) in field.world.facts.sums.items():
                if worker == BYZANTINE:
                    field.ask(BYZANTINE, kind, vertex, block=block, round_number=round_number)
                    refused += 1
        field.echo(BYZANTINE, now)
        team.play()
        team.check()
    assert field.counted()["WRONG_TAG"] == refused > 0
