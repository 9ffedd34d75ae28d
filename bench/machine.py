# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Checks what this machine lacks."""

import os
import shutil

from switchgnn.topologies.targets import BMV2_PROGRAM


def lacks(*, bmv2: bool = False) -> str | None:
    """Return why a figure with interfaces cannot be measured, or None if it can."""
    if os.geteuid() != 0:
        return "needs root, for a network namespace and veth pairs"
    if shutil.which("ip") is None:
        return "needs `ip` (apt-get install iproute2)"
    if bmv2 and shutil.which(BMV2_PROGRAM) is None:
        return f"needs BMv2: {BMV2_PROGRAM} is not on the PATH"
    return None
