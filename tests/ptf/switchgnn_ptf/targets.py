# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The ways to run the program under PTF, and what each of them needs."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from switchgnn.topologies import Backend
from switchgnn.topologies.targets import BMV2_PROGRAM, Target, bmv2_installed
from tests.ptf.switchgnn_ptf.wiring import UdpWiring, VethWiring


@dataclass(frozen=True)
class Setting:
    """A switch, the links that it is wired with, and the code it runs if it is not the usual."""

    name: str
    target: Target
    wiring: type[VethWiring] | type[UdpWiring]
    backend: Backend | None = None

    def missing(self) -> str | None:
        """Return why it cannot run here, or None."""
        if self.target is Target.BMV2 and not bmv2_installed():
            return f"{BMV2_PROGRAM} is not on the PATH"
        if self.wiring is VethWiring and (os.geteuid() != 0 or shutil.which("ip") is None):
            return "virtual interfaces need root and iproute2"
        return None

    def ptf_options(self, platforms: Path) -> list[str]:
        """Return how PTF reaches the links."""
        if self.wiring is VethWiring:
            return ["--platform", "eth"]
        return ["--platform", "udp", "--platform-dir", str(platforms), "--allow-user"]


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("bmv2", Target.BMV2, VethWiring),
        Setting("embedded-veth", Target.EMBEDDED, VethWiring),
        Setting("embedded-udp", Target.EMBEDDED, UdpWiring),
        Setting("embedded-python", Target.EMBEDDED, UdpWiring, Backend.PYTHON),
    )
}
ON_PYTHON = "embedded-python"


def ptf_program() -> list[str]:
    """Return the command of the PTF that is installed beside this Python."""
    return [sys.executable, str(Path(sys.executable).with_name("ptf"))]
