# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with captures."""

from switchgnn.base.errors import SwitchGNNError


class CaptureError(SwitchGNNError):
    """A capture cannot be made, or cannot be read."""


class DamageError(CaptureError):
    """From some place on a file is no capture any more."""
