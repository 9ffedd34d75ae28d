"""The errors of all transports, and workers in messages."""

from collections.abc import Iterable

from switchgnn.base.errors import SwitchGNNError


class HostError(SwitchGNNError):
    """A worker cannot go on."""

    def __init__(self, message: str, workers: Iterable[int] = ()) -> None:
        super().__init__(message)
        # The numbers of the other workers that the message blames; often empty.
        self.workers = tuple(workers)


class FeatureError(HostError):
    """The features that a caller handed in cannot be exchanged."""


class LinkError(HostError):
    """The link to the switch cannot be opened or used."""


class TransportError(HostError):
    """A transport does not exist, or cannot do what is asked of it."""


class DirectError(HostError):
    """Workers cannot exchange rows with each other this way."""


class SilentWorkerError(DirectError):
    """Another worker did not answer in time, or has left."""


class FramingError(DirectError):
    """An MTU that frames between hosts cannot have."""


class ScheduleError(DirectError):
    """A schedule that cannot be made, read or written."""


def named_workers(workers: list[int]) -> str:
    """Return the workers as a message names them: ``worker 3``, ``workers 1, 2``."""
    return f"worker{'s' if len(workers) > 1 else ''} {', '.join(map(str, workers))}"
