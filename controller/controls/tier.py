# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of tier.p4: at which tier of a leaf-spine a switch stands."""

from switchgnn.base.network import Network
from switchgnn.controller.controls.default import decode_default, encode_default
from switchgnn.controller.controls.worker import neighbour_ports
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.plan import SwitchPlan

ACTION = "set_tier"


class Tier:
    """The tier table; it has no key, its default action is the setting."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("tier")

    def encode(self, plan: SwitchPlan, network: Network) -> bytes:
        """Return the default action that says where the switch stands.

        The first spine collects the barrier of all.
        """
        ports, everybody = neighbour_ports(plan, network), (1 << plan.manifest.workers) - 1
        values = {
            "above": ports[len(plan.below)] if plan.above else 0,
            "number": plan.part.number if plan.part else 0,
            "elsewhere": everybody & ~sum(plan.members),
            "leaves": int(plan.part is not None and not plan.above),
        }
        return encode_default(self.table, ACTION, values)

    def decode(self, default: bytes) -> dict[str, int]:
        """Return the setting in a default action by name."""
        return decode_default(self.table, ACTION, default)
