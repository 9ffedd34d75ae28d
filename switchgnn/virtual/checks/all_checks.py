# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All checks."""

from switchgnn.virtual.checks.barrier_waits import BarrierWaits
from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.checks.ends import Ends
from switchgnn.virtual.checks.frames_counted import FramesCounted
from switchgnn.virtual.checks.memory_bounded import MemoryBounded
from switchgnn.virtual.checks.right_party import RightParty
from switchgnn.virtual.checks.sums_exact import SumsExact
from switchgnn.virtual.checks.sums_leave_exact import SumsLeaveExact
from switchgnn.virtual.checks.tags_grow import TagsGrow


def all_checks() -> list[Check]:
    """Return a new one of each."""
    return [
        SumsExact(),
        SumsLeaveExact(),
        BarrierWaits(),
        TagsGrow(),
        FramesCounted(),
        MemoryBounded(),
        RightParty(),
        Ends(),
    ]
