# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the table of session.p4: which install the switch serves."""

from dataclasses import asdict, dataclass

import numpy as np

from switchgnn.controller.controls.default import decode_default, encode_default
from switchgnn.controller.p4runtime.layout import Layout, Table
from switchgnn.controller.plan import SwitchPlan
from switchgnn.planner.lanes import LANES

ACTION = "set_session"


@dataclass(frozen=True)
class SessionEntry:
    """What a switch says of the install it serves.

    Attributes:
        session: grows with every install; 0 before the first one.
        plan: first 32 bits of the plan's digest; 0 when the tables serve no plan.
        members: one bit for each worker of the plan.
        magnitude_limit: the largest magnitude, as the bits of a float32, that a worker may
            report.
        width: of the slots, and of the widest frames: 8 << width numbers.
        any_turn: 1 where the switch may have forgotten whose turn it is, or never hears of it.
    """

    session: int
    plan: int
    members: int
    magnitude_limit: int
    width: int = 0
    any_turn: int = 0

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.members.bit_count()


class Session:
    """The session table; it has no key, its default action is the setting."""

    def __init__(self, layout: Layout) -> None:
        self.table: Table = layout.table("session")

    @property
    def max_session(self) -> int:
        """The last session number; only loading the program anew frees the lower ones."""
        return (1 << self._bits("session")) - 1

    @property
    def max_workers(self) -> int:
        """How many workers the bit map of members has room for."""
        return self._bits("members")

    def entry(
        self, session: int, plan: SwitchPlan, largest_feature: float | None = None
    ) -> SessionEntry:
        """Return the entry for a plan.

        Args:
            session: the number.
            plan: what the switch serves.
            largest_feature: the largest magnitude that a worker may report; None: any of which
                no sum overflows float32.

        Returns:
            The entry.
        """
        most = float(np.finfo(np.float32).max) / plan.manifest.max_fan_in
        most = most if largest_feature is None else min(largest_feature, most)
        limit = np.nextafter(np.float32(most), np.float32(0))
        return SessionEntry(
            session,
            plan.number,
            sum(plan.members),
            int(limit.view(np.uint32)),
            LANES.index(plan.manifest.lanes),
            any_turn=int(not plan.hears_barriers),
        )

    def encode(self, entry: SessionEntry) -> bytes:
        """Return the default action for an entry."""
        return encode_default(self.table, ACTION, asdict(entry))

    def decode(self, default: bytes) -> SessionEntry:
        """Return the entry in a default action."""
        return SessionEntry(**decode_default(self.table, ACTION, default))

    def closed(self, default: bytes) -> bytes:
        """Return the default action that keeps the number but serves no plan."""
        return self.encode(SessionEntry(self.decode(default).session, 0, 0, 0))

    def _bits(self, name: str) -> int:
        params = self.table.action(ACTION).params
        return next(field.bits for field in params if field.name == name)
