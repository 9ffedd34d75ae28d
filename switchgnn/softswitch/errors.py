# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The errors of the software switch that a user can act on."""

from switchgnn.base.errors import SwitchGNNError


class SoftSwitchError(SwitchGNNError):
    """Base of every error that the software switch reports."""


class UnsupportedProgramError(SoftSwitchError):
    """A program uses something that the switch does not run.

    Args:
        feature: the primitive, extern or language feature; also an attribute.
        where: the object of the program that uses it; also an attribute.
        hint: what the author of the program can do instead; also an attribute.
    """

    def __init__(self, feature: str, where: str, hint: str) -> None:
        self.feature = feature
        self.where = where
        self.hint = hint
        super().__init__(f"The software switch does not support {feature}, used in {where}: {hint}")


class MalformedProgramError(SoftSwitchError):
    """The bytes given as a program are not a BMv2 JSON document that the switch can read."""


class PortError(SoftSwitchError):
    """A port cannot be attached: bad description, missing interface or address in use."""


class GrpcAddressError(SoftSwitchError):
    """The gRPC server cannot listen on the requested address."""


class StateFileError(SoftSwitchError):
    """A file with the state of a switch cannot be read or written."""


class RequestError(SoftSwitchError):
    """A request of a controller is refused.

    Attributes:
        code: canonical gRPC status code (``google.rpc.Code``) of the refusal.
    """

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)
