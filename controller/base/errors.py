"""Errors between a controller and its switches."""

from dataclasses import dataclass

from switchgnn.base.errors import SwitchGNNError


class ControllerError(SwitchGNNError):
    """A switch, or a plan for it, that the controller cannot work with."""


class PlanRefusedError(ControllerError):
    """The plan does not fit the P4 program or the network; nothing was sent."""


class UnknownJobError(ControllerError):
    """The switch has no job of that name."""


class JobRunningError(ControllerError):
    """The job's workers are sending; nothing was changed."""


class SwitchUnreachableError(ControllerError):
    """The switch does not answer, or its connection broke."""


class NotPrimaryError(ControllerError):
    """Another controller is the primary of the switch."""


class NoPrimaryError(NotPrimaryError):
    """No controller is the primary, and one with this election id cannot be."""


class OtherPlanError(ControllerError):
    """The switch serves a plan of somebody else; nothing was sent."""


class PipelineMissingError(ControllerError):
    """The switch runs no P4 program."""


class OtherProgramError(ControllerError):
    """The switch runs a P4 program that is not SwitchGNN's."""


@dataclass(frozen=True)
class UpdateFailure:
    """One update that a switch refused."""

    index: int  # of the update in its write request
    entry: str  # the table or group, and the decoded key
    code: int  # canonical gRPC status code, such as 6 for ALREADY_EXISTS
    reason: str  # the switch's words


class WriteRefusedError(ControllerError):
    """The switch refused updates; those before and after them may be in place."""

    def __init__(self, message: str, failures: tuple[UpdateFailure, ...]) -> None:
        super().__init__(message)
        self.failures = failures  # of the first request that had any


class VerificationError(ControllerError):
    """What was read back is not what was written."""


class RollbackError(ControllerError):
    """An install failed and so did restoring what was there before."""


class InstallCancelledError(ControllerError):
    """An install stopped because another switch of the same install failed."""
