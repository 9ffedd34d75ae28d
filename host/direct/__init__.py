# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ways to get the sums over remote neighbours, behind one interface."""

from switchgnn.host.direct.binned import (
    BinnedSchedule,
    BinnedTransport,
    binned_schedules,
    read_binned_schedule,
    write_binned_schedule,
)
from switchgnn.host.direct.copies import copy_schedules
from switchgnn.host.direct.errors import (
    DirectError,
    FramingError,
    ScheduleError,
    SilentWorkerError,
)
from switchgnn.host.direct.frames import PROTOCOL
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.partial import partial_schedules
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.direct.schedule import DirectSchedule, rows_per_pair
from switchgnn.host.direct.schedule_files import read_schedule, schedule_file, write_schedule
from switchgnn.host.direct.stream import Stream
from switchgnn.host.direct.transport import DirectTransport
from switchgnn.host.direct.visit_order import visit_order

__all__ = [
    "PROTOCOL",
    "BinnedSchedule",
    "BinnedTransport",
    "DirectError",
    "DirectSchedule",
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
    "read_binned_schedule",
    "read_schedule",
    "rows_per_pair",
    "schedule_file",
    "visit_order",
    "write_binned_schedule",
    "write_schedule",
]
