"""Exchanges between hosts: the transports `host`, `host-partial` and `g3`."""

from switchgnn.host.direct.kinds import copy_schedules, partial_schedules
from switchgnn.host.direct.schedule import (
    read_schedule,
    rows_per_pair,
    schedule_file,
    write_schedule,
)

__all__ = [
    "copy_schedules",
    "partial_schedules",
    "read_schedule",
    "rows_per_pair",
    "schedule_file",
    "write_schedule",
]
