# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What keeps a run from being shown."""

from switchgnn.base.errors import SwitchGNNError


class LiveError(SwitchGNNError):
    """The page cannot be served."""
