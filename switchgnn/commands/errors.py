# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The errors of the commands themselves."""

from switchgnn.errors import SwitchGNNError


class PlotError(SwitchGNNError):
    """A plot could not be made."""
