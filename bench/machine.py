"""Checks what this machine lacks."""

import os
import shutil

from switchgnn.base.native import find_compiler
from switchgnn.base.network_file import Target
from switchgnn.topologies.targets import BMV2_PROGRAM


def lacks() -> str | None:
    """Return why a figure with interfaces cannot be measured, or None if it can."""
    if os.geteuid() != 0:
        return "needs root, for a network namespace and veth pairs"
    if shutil.which("ip") is None:
        return "needs `ip` (apt-get install iproute2)"
    return None


def lacks_bmv2() -> str | None:
    """Return why a figure with BMv2 cannot be measured, or None if it can."""
    if shutil.which(BMV2_PROGRAM) is None:
        return lacks() or f"needs BMv2: {BMV2_PROGRAM} is not on the PATH"
    return lacks()


def lacks_compiler() -> str | None:
    """Return why a figure of compiled code cannot be measured, or None if it can."""
    return None if find_compiler() else "needs a C++ compiler (apt-get install g++)"


def installed_targets() -> list[Target]:
    """Return the switches that can be measured."""
    return [Target.EMBEDDED] if lacks_bmv2() else [Target.EMBEDDED, Target.BMV2]
