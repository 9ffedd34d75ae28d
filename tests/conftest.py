# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tells at the end on which switches and networks the tests could run."""

import os

from switchgnn.planner.partition.ptscotch import ptscotch_missing
from switchgnn.topologies.mininet_fabric import mininet_missing
from switchgnn.topologies.targets import BMV2_PROGRAM, bmv2_installed

# Before anything imports PyTorch: see switchgnn/commands/train/exchange.py.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_terminal_summary(terminalreporter):
    no_mininet = mininet_missing()
    if not bmv2_installed():
        bmv2 = f"not run: {BMV2_PROGRAM} is not on the PATH"
    elif no_mininet:
        bmv2 = f"only where no Mininet is needed: {no_mininet}"
    else:
        bmv2 = "ran"
    terminalreporter.section("targets")
    terminalreporter.write_line("switch embedded: ran")
    terminalreporter.write_line(f"switch bmv2: {bmv2}")
    terminalreporter.write_line("fabric loopback: ran")
    terminalreporter.write_line(
        f"fabric mininet: {f'not run: {no_mininet}' if no_mininet else 'ran'}"
    )
    no_ptscotch = ptscotch_missing()
    terminalreporter.write_line(
        f"engine ptscotch: {f'not run: {no_ptscotch}' if no_ptscotch else 'ran'}"
    )
