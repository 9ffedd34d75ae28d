# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ways to get the sums over remote neighbours, behind one interface."""

from switchgnn.planner.direction import Direction
from switchgnn.transports.errors import ScheduleError, SilentWorkerError, TransportError
from switchgnn.transports.host_based import HostTransport, copy_schedules
from switchgnn.transports.host_binned import (
    BinnedSchedule,
    binned_schedules,
    read_binned_schedule,
    write_binned_schedule,
)
from switchgnn.transports.host_partial import partial_schedules
from switchgnn.transports.host_schedule import HostSchedule, rows_per_pair
from switchgnn.transports.local import LocalTransport
from switchgnn.transports.sampling import Sampling
from switchgnn.transports.schedule_files import read_schedule, schedule_file, write_schedule
from switchgnn.transports.stream import Stream
from switchgnn.transports.switch import SwitchTransport
from switchgnn.transports.transport import NO_TRAFFIC, Transport, add_traffic
from switchgnn.transports.visit_order import visit_order
from switchgnn.transports.wire import PROTOCOL, Station

__all__ = [
    "NO_TRAFFIC",
    "PROTOCOL",
    "BinnedSchedule",
    "Direction",
    "HostSchedule",
    "HostTransport",
    "LocalTransport",
    "Sampling",
    "ScheduleError",
    "SilentWorkerError",
    "Station",
    "Stream",
    "SwitchTransport",
    "Transport",
    "TransportError",
    "add_traffic",
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
