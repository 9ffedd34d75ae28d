# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Random and mutated frames for a world, from a seed."""

import random

from switchgnn.lab.virtual import byzantine as generator
from switchgnn.lab.virtual.byzantine import ON_A_WIRE
from tests.fuzz.packets import BROADCAST, kind_template, ordinary_packets
from tests.fuzz.world import World

IN_A_DATAGRAM = 60_000


class Generator(generator.Generator):
    def __init__(
        self,
        world: World,
        seed: int,
        *,
        source: str,
        target: str,
        shortest: int = 0,
        longest: int = ON_A_WIRE,
    ) -> None:
        macs = [each.station.mac for each in world.network.neighbours]
        super().__init__(
            world.facts,
            random.Random(seed),
            templates={
                kind: kind_template(kind, source=source, target=target, plan=world.facts.plan_id)
                for kind in range(16)
            },
            ordinary=[
                frame
                for mac in (*macs, target, BROADCAST, "02:00:00:00:77:77")
                for frame in ordinary_packets(source, mac)
            ],
            shortest=shortest,
            longest=longest,
        )
