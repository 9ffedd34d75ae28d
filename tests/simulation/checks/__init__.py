# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The invariants that hold whatever goes wrong."""

from tests.simulation.checks.barriers import (
    BarrierWaits,
    DoneIsDone,
    OneProcess,
    PulsesBeat,
    PulsesPassedOn,
    WorkersWait,
)
from tests.simulation.checks.check import Check, PacketCheck, PacketReader
from tests.simulation.checks.counters import (
    FramesCounted,
    MemoryBounded,
    PartsAskedFor,
    PartsMarked,
    TagsGrow,
    TalliesAddUp,
    TurnsGrow,
)
from tests.simulation.checks.features import (
    AcknowledgedArrived,
    MagnitudesAgree,
    MissingCounted,
    SourcesOnce,
    WindowHeld,
)
from tests.simulation.checks.outcomes import (
    CalmIsQuiet,
    DifferencesTold,
    Ends,
    NothingCrashes,
    RightParty,
    SumsExact,
)
from tests.simulation.checks.reduces import (
    ReducedAlike,
    ReducedExact,
    ReducedInOrder,
    ReducedInTime,
    ReduceRightParty,
    ReducesAddedOnce,
    ReducesLeaveExact,
    ReduceTalliesAddUp,
    ReduceWindowHeld,
)
from tests.simulation.checks.sums import (
    FetchedSumsStay,
    ResentRight,
    SumsLeaveExact,
    SumsLeaveOnce,
)


def all_checks() -> list[Check]:
    """Return a new one of each."""
    packets: list[PacketCheck] = [
        SumsLeaveExact(),
        BarrierWaits(),
        SumsLeaveOnce(),
        FetchedSumsStay(),
        AcknowledgedArrived(),
        DoneIsDone(),
        WindowHeld(),
        MagnitudesAgree(),
        PulsesPassedOn(),
        PulsesBeat(),
        SourcesOnce(),
        ResentRight(),
        WorkersWait(),
        MissingCounted(),
        OneProcess(),
        ReducesLeaveExact(),
        ReduceWindowHeld(),
    ]
    return [
        NothingCrashes(),
        SumsExact(),
        PartsMarked(),
        PartsAskedFor(),
        TagsGrow(),
        TurnsGrow(),
        FramesCounted(),
        MemoryBounded(),
        TalliesAddUp(),
        CalmIsQuiet(),
        ReducedExact(),
        ReducedAlike(),
        ReducedInOrder(),
        ReducedInTime(),
        ReduceTalliesAddUp(),
        ReducesAddedOnce(),
        *packets,
        PacketReader(packets),
        RightParty(),
        ReduceRightParty(),
        DifferencesTold(),
        Ends(),
    ]
