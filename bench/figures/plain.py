# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""BMv2 with banks compared with BMv2 with one slot per pass and 32 registers."""

from collections.abc import Iterator

from bench.beds.bed import Bed, Served
from bench.beds.plain_program import plain_program, plain_switch_part
from bench.beds.workload import standard_plan
from bench.figures.data_plane import exchanging, saturated
from bench.line import Line
from bench.machine import lacks_bmv2
from bench.settings import Settings
from switchgnn.topologies import Target

NAME = "banks"
_RATIO = 4.0
missing = lacks_bmv2


def run(settings: Settings) -> Iterator[Line]:
    """Measure both programs."""
    plan = standard_plan()
    banks = Served.whole(plan)
    plain = Served(plan, plain_switch_part(plan.switch), plain_program())
    with Bed(Target.BMV2, banks) as a, Bed(Target.BMV2, plain) as b:
        for compare in (saturated, exchanging):
            yield compare(NAME, settings, ("8 banks", a), ("32 registers", b), _RATIO)
