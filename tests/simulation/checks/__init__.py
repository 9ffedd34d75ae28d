"""The invariants that hold whatever goes wrong; docs/reliability.md describes each."""

from tests.simulation.checks.barriers import (
    BarrierWaits,
    DoneIsDone,
    MagnitudesAgree,
    WorkersWait,
)
from tests.simulation.checks.check import PacketReader
from tests.simulation.checks.counters import MemoryBounded
from tests.simulation.checks.features import AcknowledgedArrived, PartsMarked, SourcesOnce
from tests.simulation.checks.outcomes import CalmIsQuiet, Ends, RightParty
from tests.simulation.checks.reduces import ReducedExact, ReduceRightParty, ReducesLeaveExact
from tests.simulation.checks.sums import ResentRight, SumsExact, SumsLeaveExact, SumsLeaveOnce

_OF_PACKETS = (
    *(SumsLeaveExact, BarrierWaits, SumsLeaveOnce, AcknowledgedArrived, DoneIsDone),
    *(MagnitudesAgree, SourcesOnce, ResentRight, WorkersWait, ReducesLeaveExact),
)
# Crashes come before other violations, which they explain, and errors after them.
_BEFORE = (Ends, SumsExact, PartsMarked, MemoryBounded, CalmIsQuiet, ReducedExact)
_AFTER = (RightParty, ReduceRightParty)
CHECKS = (*_BEFORE, *_OF_PACKETS, *_AFTER)


def all_checks():
    """Return a new check of each class, and what hands packets to them."""
    packets = [kind() for kind in _OF_PACKETS]
    reader = PacketReader(packets)
    return [*(kind() for kind in _BEFORE), *packets, reader, *(kind() for kind in _AFTER)]
