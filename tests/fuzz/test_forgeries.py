# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames made on purpose, where chance would need long to find them."""

import numpy as np
import pytest

from switchgnn.host.wire.header import FRAGMENT_BYTES, SESSION_MASK, BarrierBody, Header, Kind
from switchgnn.lab.virtual.network import OFFSET_AT, VERSION_IHL_AT
from switchgnn.p4src import load_program
from switchgnn.topologies import Target
from tests.fuzz.field import STRANGER, field, needs_bmv2
from tests.fuzz.team import BRIEF, Team
from tests.fuzz.world import WORKERS, make_world
from tests.support.waiting import wait_until

VICTIM = 0
MAD = WORKERS - 1
NAN = 0x7FC00000
MINUS_TINY = 0x80000001


TARGETS = [
    pytest.param(Target.EMBEDDED, id="embedded"),
    pytest.param(Target.BMV2, id="bmv2", marks=needs_bmv2),
]


@pytest.fixture(scope="module", params=TARGETS)
def one_ground(request, tmp_path_factory):
    program = load_program()
    folder = tmp_path_factory.mktemp("forgeries")
    with field(request.param, make_world(program.digest), program, folder) as made:
        yield made


@pytest.fixture
def ground(one_ground):
    one_ground.renew()
    return one_ground


def as_it_is(frame):
    return frame


def as_a_fragment(frame):
    """A last fragment at offset 8: its payload is no SwitchGNN header to the switch."""
    return frame[:OFFSET_AT] + b"\0\1" + frame[OFFSET_AT + 2 :]


def as_ipv6_version(frame):
    return frame[:VERSION_IHL_AT] + b"\x65" + frame[VERSION_IHL_AT + 1 :]


def with_options(frame):
    return frame[:VERSION_IHL_AT] + b"\x46" + frame[VERSION_IHL_AT + 1 :]


def in_a_vlan(identifier, ethertype=b"\x81\0"):
    def wrap(frame):
        return frame[:12] + ethertype + identifier.to_bytes(2, "big") + frame[12:]

    wrap.__name__ = f"in_vlan_{identifier}_{ethertype.hex()}"
    return wrap


def in_two_vlans(frame):
    return in_a_vlan(0)(in_a_vlan(0)(frame))


def of_another_type(frame):
    return frame[:12] + b"\x08\x01" + frame[14:]


def behind_a_length(frame):
    """An IEEE 802.3 frame, with the type in an LLC/SNAP header."""
    return frame[:12] + (len(frame) - 6).to_bytes(2, "big") + b"\xaa\xaa\3\0\0\0" + frame[12:]


def too_long(frame):
    return frame + bytes(40)


@pytest.mark.parametrize("kind", [Kind.SUM, Kind.ADVANCE])
@pytest.mark.parametrize(
    "disguise",
    [
        as_it_is,
        as_a_fragment,
        as_ipv6_version,
        with_options,
        in_a_vlan(0),
        in_a_vlan(7),
        in_a_vlan(0, b"\x88\xa8"),
        of_another_type,
        pytest.param(in_a_vlan(0, b"\x91\0"), marks=pytest.mark.full),
        pytest.param(in_two_vlans, marks=pytest.mark.full),
        pytest.param(behind_a_length, marks=pytest.mark.full),
        pytest.param(too_long, marks=pytest.mark.full),
    ],
    ids=lambda disguise: disguise.__name__,
)
def test_no_port_may_speak_for_the_switch(ground, disguise, kind):
    """A frame to a worker's address is forwarded, but must not be taken for the switch's."""
    team = Team(
        ground.world, ground.links[:WORKERS], ground.addresses, session=ground.session, pace=BRIEF
    )
    team.begin()
    team.start([VICTIM])
    wait_until(lambda: ground.links[VICTIM].traffic.frames_up)
    macs = bytes.fromhex((ground.mac(VICTIM) + ground.mac(STRANGER)).replace(":", ""))
    for number, packet in enumerate(forged(ground, kind)):
        frame = ground.addresses(STRANGER).frame(packet)
        ground.links[STRANGER].send(disguise(macs + frame[12:]))
        ground.echo(STRANGER, number)
    team.start(range(1, WORKERS))
    team.join()
    team.check()


def forged(ground, kind):
    """Packets as the switch sends them to the victim while it waits for round 1 to open."""
    world, session = ground.world, ground.session & SESSION_MASK
    if kind is Kind.ADVANCE:
        body = BarrierBody(magnitude=0x3F000000, plan=world.facts.plan_id, round=1, workers=7)
        yield Header(kind=kind, session=session, round=1).pack(body.pack())
        return
    lanes = np.random.default_rng(6).bytes(FRAGMENT_BYTES)
    for (block, vertex), (worker, count) in world.facts.sums.items():
        if worker == VICTIM:
            header = Header(
                kind=kind,
                dst_id=vertex,
                block_id=block,
                count=count,
                fragment=world.facts.words[0],
                session=session,
                round=1,
            )
            yield header.pack(lanes)


@pytest.mark.parametrize("magnitude", [NAN, MINUS_TINY], ids=["nan", "negative"])
def test_a_mad_magnitude_is_refused(ground, magnitude):
    team = Team(
        ground.world, ground.links[:WORKERS], ground.addresses, session=ground.session, pace=BRIEF
    )
    team.begin()
    report_done(ground, block=0, magnitude=magnitude)
    team.start(range(WORKERS))
    team.join()
    right_or_an_error(team)


def test_a_done_ahead_is_refused(ground):
    """It would open round 1 for each worker alone, with the features known by then."""
    team = Team(
        ground.world, ground.links[:WORKERS], ground.addresses, session=ground.session, pace=BRIEF
    )
    team.begin()
    largest_last(team)
    report_done(ground, block=1, magnitude=0)
    team.start(range(WORKERS))
    team.join()
    team.check()
    assert ground.counted()["WRONG_TURN"] == 1


def test_a_done_ahead_does_not_split_the_scale(ground):
    """A restarted switch accepts it, and opens the round for each worker alone."""
    team = Team(
        ground.world, ground.links[:WORKERS], ground.addresses, session=ground.session, pace=BRIEF
    )
    team.begin()
    largest_last(team)
    ground.forget_turns()
    report_done(ground, block=1, magnitude=0)
    team.start([VICTIM])
    # A worker that opens it alone gets an impossible magnitude.
    wait_until(lambda: team.errors or team.exchanges[VICTIM].tally.features_sent)
    team.start(range(1, WORKERS))
    team.join()
    right_or_an_error(team)


def report_done(ground, *, block, magnitude):
    body = BarrierBody(magnitude=magnitude, plan=ground.world.facts.plan_id).pack()
    header = Header(
        kind=Kind.DONE,
        src_id=MAD,
        is_ack=True,
        block_id=block,
        session=ground.session & SESSION_MASK,
        round=1,
    )
    ground.links[MAD].send(ground.addresses(MAD).frame(header.pack(body)))
    ground.echo(MAD, 1)


def largest_last(team):
    rows = team.world.plan.workers[VICTIM].vertices
    team.features[rows] /= np.float32(16)


def right_or_an_error(team):
    if not team.errors:
        team.check()
