# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What tells a process from another one that is the same worker."""

import secrets


def new_incarnation() -> int:
    """Draw a number of 32 bits that no other process draws."""
    return secrets.randbits(32)
