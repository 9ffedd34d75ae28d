# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch that is started again may have in it already: what others have given it."""

from dataclasses import dataclass

from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.install import Share, install_each
from switchgnn.p4src import Program
from switchgnn.softswitch.p4runtime.service import P4RuntimeService
from switchgnn.virtual.parts.control_line import VirtualConnection
from switchgnn.virtual.parts.controller import InOrder
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.subject import SwitchShare
from switchgnn.virtual.timing.clock import VirtualClock
from switchgnn.virtual.timing.scheduler import Scheduler

# The mark of a program that nobody here knows.
_OTHER_COOKIE = 1
# What is older than the first session, as the lower eight bits of sessions are compared.
_OLDEST = 255


class _AtOnce:
    """A way to a switch on which no time passes."""

    def __init__(self, switch: VirtualSwitch) -> None:
        self.switch = switch

    def pass_word(self, _until: int) -> bool:
        return self.switch.service is not None

    def reach(self, _seconds: float) -> P4RuntimeService:
        if self.switch.service is None:
            raise RuntimeError(f"Switch {self.switch.name} is off.")
        return self.switch.service


@dataclass(frozen=True, eq=False)
class FormerLife:
    """Gives a switch what it had before anybody knew of it.

    Attributes:
        program: what all switches run.
        scheduler: keeps the time.
    """

    program: Program
    scheduler: Scheduler

    def load_other_program(self, switch: VirtualSwitch) -> None:
        """Let it run what its controller does not take for its program, and serve no plan."""
        with self._client(switch) as client:
            client.set_pipeline(self.program, _OTHER_COOKIE)

    def install_older(self, switch: VirtualSwitch, share: SwitchShare, session: int) -> None:
        """Let it serve another plan, in a session that is older than one.

        Args:
            switch: it.
            share: what it serves.
            session: the one that is newer.
        """
        with self._client(switch) as client:
            install_each(
                [Share(share.plan, share.network, client)],
                program=self.program,
                session=session - 1 if session > 1 else _OLDEST,
                clock=VirtualClock(self.scheduler),
                pool=InOrder,
            )

    def _client(self, switch: VirtualSwitch) -> P4RuntimeClient:
        def connect(_address: str, _tls: object) -> VirtualConnection:
            return VirtualConnection(_AtOnce(switch), self.scheduler)

        return P4RuntimeClient(switch.name, connect=connect)
