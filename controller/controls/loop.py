# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The multicast groups: all workers, and for loop.p4 each neighbour's port with each loop port."""

from switchgnn.base.network import Network
from switchgnn.controller.controls.worker import neighbour_ports
from switchgnn.controller.plan import SwitchPlan

# As in sizes.p4.
FIRST_LOOP_PORT = 256
LOOP_LANES = 32
ALL_WORKERS_GROUP = 1
ALL_STATIONS_GROUP = 2
# Groups below are left for others.
FIRST_RESULT_GROUP = 16


def result_group(neighbour: int) -> int:
    """Return the first of a neighbour's groups; the others follow, one per loop port."""
    return FIRST_RESULT_GROUP + neighbour * LOOP_LANES


class Loop:
    """The multicast groups."""

    def groups(self, plan: SwitchPlan, network: Network) -> dict[int, tuple[int, ...]]:
        """Return the sorted ports of each group by its number."""
        ports = neighbour_ports(plan, network)
        below = len(plan.below)
        groups = {ALL_WORKERS_GROUP: tuple(sorted(ports[:below]))}
        if plan.above:
            # One spine passes broadcasts on.
            groups[ALL_STATIONS_GROUP] = tuple(sorted(ports[: below + 1]))
        for neighbour, port in enumerate(ports):
            for lane in range(LOOP_LANES):
                groups[result_group(neighbour) + lane] = (port, FIRST_LOOP_PORT + lane)
        return groups
