# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The embedded switch compared with BMv2."""

from collections.abc import Iterator

from bench.beds.bed import Bed, Served
from bench.beds.workload import standard_plan
from bench.figures.data_plane import compare
from bench.line import Line
from bench.machine import lacks
from bench.settings import Settings
from switchgnn.p4src import load_program
from switchgnn.topologies import Target

NAME = "embedded"
_RATIO = 1.0


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    return lacks(bmv2=True)


def run(settings: Settings) -> Iterator[Line]:
    """Measure both targets."""
    plan = standard_plan()
    served = Served(plan, plan.switch, load_program())
    with Bed(Target.EMBEDDED, served) as a, Bed(Target.BMV2, served) as b:
        yield from compare(NAME, settings, ("embedded", a), ("BMv2", b), _RATIO)
