"""Exchanges between hosts: the transports `host`, `host-partial` and `g3`."""

from switchgnn.host.direct.errors import DirectError, FramingError, ScheduleError, SilentWorkerError
from switchgnn.host.direct.frames import PROTOCOL
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import (
    binned_schedules,
    copy_schedules,
    partial_schedules,
)
from switchgnn.host.direct.outbox import visit_order
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.direct.schedule import (
    read_schedule,
    rows_per_pair,
    schedule_file,
    write_schedule,
)
from switchgnn.host.direct.stream import Stream
from switchgnn.host.direct.transport import DirectTransport

__all__ = [
    "PROTOCOL",
    "DirectError",
    "DirectTransport",
    "Framing",
    "FramingError",
    "Sampling",
    "ScheduleError",
    "SilentWorkerError",
    "Stream",
    "binned_schedules",
    "copy_schedules",
    "partial_schedules",
    "read_schedule",
    "rows_per_pair",
    "schedule_file",
    "visit_order",
    "write_schedule",
]
