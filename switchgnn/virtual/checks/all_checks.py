# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""All checks."""

from switchgnn.virtual.checks.calm_is_quiet import CalmIsQuiet
from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.checks.differences_told import DifferencesTold
from switchgnn.virtual.checks.ends import Ends
from switchgnn.virtual.checks.frames_counted import FramesCounted
from switchgnn.virtual.checks.memory_bounded import MemoryBounded
from switchgnn.virtual.checks.nothing_crashes import NothingCrashes
from switchgnn.virtual.checks.packets.acknowledged_arrived import AcknowledgedArrived
from switchgnn.virtual.checks.packets.barrier_waits import BarrierWaits
from switchgnn.virtual.checks.packets.done_is_done import DoneIsDone
from switchgnn.virtual.checks.packets.fetched_sums_stay import FetchedSumsStay
from switchgnn.virtual.checks.packets.magnitudes_agree import MagnitudesAgree
from switchgnn.virtual.checks.packets.missing_counted import MissingCounted
from switchgnn.virtual.checks.packets.one_process import OneProcess
from switchgnn.virtual.checks.packets.packet_check import PacketCheck, PacketReader
from switchgnn.virtual.checks.packets.pulses_beat import PulsesBeat
from switchgnn.virtual.checks.packets.pulses_passed_on import PulsesPassedOn
from switchgnn.virtual.checks.packets.resent_right import ResentRight
from switchgnn.virtual.checks.packets.sources_once import SourcesOnce
from switchgnn.virtual.checks.packets.sums_leave_exact import SumsLeaveExact
from switchgnn.virtual.checks.packets.sums_leave_once import SumsLeaveOnce
from switchgnn.virtual.checks.packets.window_held import WindowHeld
from switchgnn.virtual.checks.packets.workers_wait import WorkersWait
from switchgnn.virtual.checks.parts_asked_for import PartsAskedFor
from switchgnn.virtual.checks.parts_marked import PartsMarked
from switchgnn.virtual.checks.right_party import RightParty
from switchgnn.virtual.checks.sums_exact import SumsExact
from switchgnn.virtual.checks.tags_grow import TagsGrow
from switchgnn.virtual.checks.tallies_add_up import TalliesAddUp
from switchgnn.virtual.checks.turns_grow import TurnsGrow


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
        *packets,
        PacketReader(packets),
        RightParty(),
        DifferencesTold(),
        Ends(),
    ]
