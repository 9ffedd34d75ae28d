# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a job."""

from switchgnn.base.errors import SwitchGNNError


class JobError(SwitchGNNError):
    """A job that cannot be written, read or joined."""
