# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong at a worker."""

from switchgnn.errors import SwitchGNNError


class HostError(SwitchGNNError):
    """A worker cannot go on."""


class FeatureError(HostError):
    """The features that a caller handed in cannot be exchanged."""


class LinkError(HostError):
    """The link to the switch cannot be opened or used."""


class ExchangeTimeoutError(HostError):
    """The switch or another worker did not answer in time."""


class PlanMismatchError(HostError):
    """The switch serves another plan than this worker holds."""


class RoundMismatchError(HostError):
    """The switch stands in a later round than this worker."""


class BarrierError(HostError):
    """The barrier's answers contradict what this worker knows."""
