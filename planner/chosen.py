# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans with strategies that a preset chose."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.build import Progress, build_plan
from switchgnn.planner.graph import Graph
from switchgnn.planner.plan import Plan
from switchgnn.planner.presets import Choice, Situation


def build_chosen(
    graph: Graph,
    choice: Choice,
    situation: Situation,
    *,
    program: str,
    seed: int,
    directions: str = "forward",
    assignment: NDArray[np.int32] | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Give build_plan what was chosen; see there for the other arguments and errors."""
    return build_plan(
        graph,
        workers=situation.workers,
        slots=situation.slots,
        program=program,
        seed=seed,
        partition=choice.partition,
        blocks=choice.blocks,
        send=choice.send,
        weight=choice.weight,
        order=choice.order,
        directions=directions,
        assignment=assignment,
        progress=progress,
    )
