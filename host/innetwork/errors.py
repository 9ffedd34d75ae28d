# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in an exchange over the switch."""

from switchgnn.host.errors import HostError


class InNetworkError(HostError):
    """The switch, or another worker behind it, does not play its part."""


class ExchangeTimeoutError(InNetworkError):
    """The switch or another worker did not answer in time."""


class PlanMismatchError(InNetworkError):
    """The switch serves another plan than this worker holds."""


class SessionMismatchError(InNetworkError):
    """The switch serves another install than this worker takes part in."""


class RoundMismatchError(InNetworkError):
    """The switch stands in a later round than this worker, or knows another process as it."""


class MagnitudeError(InNetworkError):
    """A worker has reported a magnitude that the others cannot work with."""


class DisagreementError(InNetworkError):
    """Workers exchange features of different widths, or in different directions."""


class BarrierError(InNetworkError):
    """The barrier's answers contradict what this worker knows."""
