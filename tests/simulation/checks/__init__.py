"""The invariants that hold whatever goes wrong; docs/reliability.md describes each."""

from tests.simulation.checks.apart import JobsApart
from tests.simulation.checks.barriers import BarrierWaits, DoneIsDone, MagnitudesAgree, WorkersWait
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
# Of bundles only results are checked.
_BEFORE = (Ends, SumsExact, MemoryBounded, CalmIsQuiet, ReducedExact)
_OF_SWITCHES = (PartsMarked, JobsApart)
_AFTER = (RightParty, ReduceRightParty)
CHECKS = (*_BEFORE, *_OF_SWITCHES, *_OF_PACKETS, *_AFTER)


def all_checks(rows):
    """Return a new check of each class for frames of some rows, and what hands packets to them."""
    packets = [kind() for kind in _OF_PACKETS] if rows == 1 else []
    others = [kind() for kind in (*_BEFORE, *_OF_SWITCHES)]
    return [*others, *packets, PacketReader(packets), *(kind() for kind in _AFTER)]
