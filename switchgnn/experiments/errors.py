# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The experiments' error class."""

from switchgnn.base.errors import SwitchGNNError


class ExperimentError(SwitchGNNError):
    """A description that says nothing, or points that failed, in one sentence."""
