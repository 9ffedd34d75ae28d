# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The invariants that hold whatever goes wrong."""

from switchgnn.lab.virtual.checks.barriers import (
    BarrierWaits,
    DoneIsDone,
    OneProcess,
    PulsesBeat,
    PulsesPassedOn,
    WorkersWait,
)
from switchgnn.lab.virtual.checks.check import Check, PacketCheck, PacketReader
from switchgnn.lab.virtual.checks.counters import (
    FramesCounted,
    MemoryBounded,
    PartsAskedFor,
    PartsMarked,
    TagsGrow,
    TalliesAddUp,
    TurnsGrow,
)
from switchgnn.lab.virtual.checks.features import (
    AcknowledgedArrived,
    MagnitudesAgree,
    MissingCounted,
    SourcesOnce,
    WindowHeld,
)
from switchgnn.lab.virtual.checks.outcomes import (
    CalmIsQuiet,
    DifferencesTold,
    Ends,
    NothingCrashes,
    RightParty,
    SumsExact,
)
from switchgnn.lab.virtual.checks.reduces import (
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
from switchgnn.lab.virtual.checks.sums import (
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
