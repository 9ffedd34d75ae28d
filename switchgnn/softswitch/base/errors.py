"""Errors of the software switch."""

from switchgnn.base.errors import SwitchGNNError


class SoftSwitchError(SwitchGNNError):
    """Base of all errors of the software switch; each is one line, whatever names it repeats."""

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


class UnsupportedProgramError(SoftSwitchError):
    """A program uses a feature that the switch does not support.

    Args:
        feature: the primitive, extern or language feature.
        where: the object of the program that uses it.
        hint: an alternative for the program's author.
    """

    def __init__(self, feature: str, where: str, hint: str) -> None:
        self.feature = feature
        self.where = where
        self.hint = hint
        super().__init__(f"The software switch does not support {feature}, used in {where}: {hint}")


class MalformedProgramError(SoftSwitchError):
    """A program is not a valid BMv2 JSON document."""


def inconsistent(error: Exception) -> MalformedProgramError:
    """Return the error for a program in which a lookup or a computation fails."""
    why = f"it lacks {error}" if isinstance(error, KeyError) else f"{type(error).__name__} {error}"
    return MalformedProgramError(f"The program is inconsistent ({why}): compile it again.")


class PortError(SoftSwitchError):
    """A port cannot be attached: bad description, missing interface or address in use."""


class GrpcAddressError(SoftSwitchError):
    """The gRPC server cannot listen on the requested address."""


class RequestError(SoftSwitchError):
    """A controller's request is refused; ``code`` is a ``google.rpc.Code``."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)
