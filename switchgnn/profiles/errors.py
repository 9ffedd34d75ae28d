# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the profile of a switch, or with what is asked of the switch."""

from switchgnn.base.errors import SwitchGNNError


class ProfileError(SwitchGNNError):
    """A profile that cannot be read or describes no switch, or a plan that does not fit it."""
