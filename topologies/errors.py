# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The errors of fabrics."""

from switchgnn.base.errors import SwitchGNNError


class FabricError(SwitchGNNError):
    """A switch, a network or a process could not be started."""
