# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of captures."""

from switchgnn.base.errors import SwitchGNNError


class CaptureError(SwitchGNNError):
    """A capture cannot be made, or cannot be read."""


class DamageError(CaptureError):
    """A capture file is damaged from some position on."""
