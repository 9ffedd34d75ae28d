# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a network."""

from switchgnn.errors import SwitchGNNError


class NetworkError(SwitchGNNError):
    """A network file that cannot be read, or describes no network."""
