"""The errors of exchanges between hosts."""

from switchgnn.host.base.errors import HostError


class DirectError(HostError):
    """Workers cannot exchange rows with each other this way."""


class SilentWorkerError(DirectError):
    """Another worker did not answer in time, or has left."""


class FramingError(DirectError):
    """An MTU that frames between hosts cannot have."""


class ScheduleError(DirectError):
    """A schedule that cannot be made, read or written."""
