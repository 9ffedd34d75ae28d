# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What must hold after every attack at a switch."""

from tests.fuzz.field import Field
from tests.fuzz.team import Team
from tests.fuzz.world import FRAGMENTS, WORKERS


def check_the_counters(ground: Field, team: Team) -> None:
    """Every frame has one outcome, and only the workers' frames were accepted."""
    counted = ground.counted()
    assert sum(counted.values()) == ground.arrived(), counted
    assert ground.arrived() == ground.sent()
    tally = team.total()
    barriers = 1 + ground.world.blocks * FRAGMENTS
    assert counted["AGGREGATED"] == tally["features_sent"]
    assert counted["DONE_COLLECTED"] == team.round * barriers * WORKERS
    assert counted["RECALLED"] == tally["recalls"]
    assert counted["FETCHED"] == tally["fetches"]
    assert counted["RESENT"] == tally["features_served"]
    assert counted["WRONG_PLAN"] == 0
