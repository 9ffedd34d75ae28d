# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in an exchange between workers."""

from switchgnn.errors import SwitchGNNError


class TransportError(SwitchGNNError):
    """Features cannot be exchanged this way."""


class SilentWorkerError(TransportError):
    """Another worker did not answer in time, or has left."""


class ScheduleError(TransportError):
    """A schedule that cannot be made, read or written."""
