# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames at the workers in the middle of an exchange, behind a model switch."""

import pytest

from switchgnn.host.wire.addresses import Addresses
from switchgnn.p4src import load_program
from tests.fuzz.flooded import FloodedLink, arrivals
from tests.fuzz.frames import Generator
from tests.fuzz.team import Team
from tests.fuzz.world import SCALE, WORKERS, World, make_world
from tests.host.addresses import SESSION, SWITCH
from tests.host.model_switch import ModelSwitch

AT_EACH_WORKER = 400_000 if SCALE > 1 else 20_000


class TolerantSwitch(ModelSwitch):
    """Drops answers to fetches that no worker made, as the switch does."""

    def _relay(self, header, frame):
        if (header.block_id, header.dst_id) in self.destination:
            super()._relay(header, frame)


def flooded_team(world: World, shots: int) -> tuple[Team, list[FloodedLink]]:
    switch = TolerantSwitch(world.plan.switch, WORKERS, world.facts.plan_id)
    links = [
        FloodedLink(
            switch.link(worker),
            world,
            Generator(
                world,
                seed=10 + worker,
                source=SWITCH.mac,
                target=world.network.neighbours[worker].station.mac,
                longest=9216,
            ),
            shots,
        )
        for worker in range(WORKERS)
    ]

    def finished(worker, round_number, block, fragment):
        links[worker].finished = round_number, block, world.facts.words[fragment]

    def addresses(worker):
        return Addresses(world.network.neighbours[worker].station, SWITCH)

    return Team(world, links, addresses, session=SESSION, on_block=finished), links


def play_until_empty(team, links):
    while not all(link.empty for link in links):
        team.play()
        team.check()


@pytest.mark.timeout(200 * SCALE)
def test_no_sum_changes():
    world = make_world(load_program().digest)
    team, links = flooded_team(world, AT_EACH_WORKER)
    play_until_empty(team, links)
    for exchange, link in zip(team.exchanges, links, strict=True):
        assert link.injected == AT_EACH_WORKER
        assert exchange.tally.malformed == link.malformed
        assert arrivals(exchange) <= link.delivered
    assert team.total()["wrong"] > 0
    assert team.total()["late"] > 0


def test_every_frame_is_counted():
    world = make_world(load_program().digest)
    team, links = flooded_team(world, 2000)
    play_until_empty(team, links)
    for exchange, link in zip(team.exchanges, links, strict=True):
        assert arrivals(exchange) == link.delivered
