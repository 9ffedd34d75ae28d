"""Keeps a plan installed on switches that restart, except those with another plan."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.controller.base.errors import (
    ControllerError,
    NoPrimaryError,
    NotPrimaryError,
    OtherPlanError,
    PlanRefusedError,
    SwitchUnreachableError,
)
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.change import InstallReport
from switchgnn.controller.controls.session import Session
from switchgnn.controller.install import DesiredStates, MakeExecutor, Share, install_each
from switchgnn.controller.p4runtime.client import P4RuntimeClient, program_cookie
from switchgnn.controller.target import refuse_other_plan, served_plan
from switchgnn.p4src import Program

# Short, so that a watch can be stopped while it waits for a connection.
WATCH_DEADLINE = 1.0  # seconds, of clients that watch
# P4Runtime never makes a controller with the first of these election ids the primary.
_LOOKING_ON, _LOWEST_ELECTION_ID = 0, 1


class Stop(Protocol):
    """Ends a watch; a ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Tell whether to end."""

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds; tell whether to end."""


class WatchEventKind(Enum):
    """What happened."""

    INSTALLED = "installed"
    LOST = "lost"
    WAITING = "waiting"


@dataclass(frozen=True)
class WatchEvent:
    """An event at a watched switch."""

    kind: WatchEventKind
    address: str
    message: str  # a sentence


def watch(
    shares: Sequence[Share],
    desired: DesiredStates,
    *,
    on_event: Callable[[WatchEvent], None],
    stop: Stop,
    interval: float = 1.0,
    clock: Clock = SYSTEM_CLOCK,
    pool: MakeExecutor = ThreadPoolExecutor,
) -> None:
    """Install a plan and keep it installed until ``stop`` is set.

    Switches with another primary controller, such as a run, or with another plan, even one
    installed later, are left alone.

    Args:
        shares: what each switch serves, all of the same plan; clients are closed at the end.
        desired: what the switches shall hold.
        on_event: called from this thread with everything that happens.
        stop: ends the watch within about a second.
        interval: seconds between two looks at the switches.
        clock: of the reports.
        pool: makes what works on all switches at once.

    Raises ControllerError if the first install fails; NotPrimaryError if a switch has a primary
    controller already, or OtherPlanError if it serves another plan.
    """
    clients = [
        share.switch
        if isinstance(share.switch, P4RuntimeClient)
        else P4RuntimeClient(share.switch, deadline=WATCH_DEADLINE)
        for share in shares
    ]
    watcher = _Watcher(
        clients=clients,
        program=desired.program,
        plan=shares[0].plan,
        on_event=on_event,
        stop=stop,
        interval=interval,
        bring=lambda session: install_each(
            [replace(share, switch=client) for share, client in zip(shares, clients, strict=True)],
            desired,
            session=session,
            replace_others=False,
            clock=clock,
            pool=pool,
        ),
    )
    try:
        for client in clients:
            # The lowest election id displaces no other controller.
            if client.election_id > _LOWEST_ELECTION_ID:
                _refuse_other_primary(client)
        watcher.run()
    finally:
        for client in clients:
            client.close()


def _refuse_other_primary(client: P4RuntimeClient) -> None:
    """Refuse a switch that has a primary controller, even one that ours would outrank."""
    try:
        with client.another(_LOOKING_ON, primary=True):
            # Some switches make us the primary where there is no other.
            return
    except NoPrimaryError:
        return


@dataclass
class _Watcher:
    clients: Sequence[P4RuntimeClient]
    program: Program
    plan: SwitchPlan
    on_event: Callable[[WatchEvent], None]
    stop: Stop
    interval: float
    bring: Callable[[int | None], InstallReport]
    _session: int | None = None

    def run(self) -> None:
        self._install()
        while not self.stop.wait(self.interval):
            try:
                lost = [client for client in self.clients if not self._serves(client)]
            except OtherPlanError:
                raise
            except ControllerError:
                lost = [client for client in self.clients if not client.alive] or [*self.clients]
            if lost:
                for client in lost:
                    self._tell(
                        WatchEventKind.LOST,
                        client,
                        f"Switch {client.address} no longer serves the plan, or no longer obeys "
                        "this controller.",
                    )
                self._restore()

    def _install(self) -> None:
        report = self.bring(self._session)
        # Its workers are in that session: a restarted switch must return to it.
        self._session = report.session
        for client, sentence in zip(self.clients, report.sentences(), strict=True):
            self._tell(WatchEventKind.INSTALLED, client, sentence)

    def _serves(self, client: P4RuntimeClient) -> bool:
        if not client.alive or client.get_pipeline_cookie() != program_cookie(self.program):
            return False
        session = Session(client.get_layout())
        served = session.decode(client.read_default(session.table)).plan
        refuse_other_plan(client.address, served, self.plan.number)
        return served == self.plan.number

    def _restore(self) -> None:
        """Try to install until it works."""
        told = ""
        while not self.stop.is_set():
            try:
                for client in self.clients:
                    client.reopen()
                self._install()
                return
            except (PlanRefusedError, OtherPlanError):
                raise
            except ControllerError as error:
                if isinstance(error, NotPrimaryError):
                    self._look_on()
                if str(error) != told:
                    told = str(error)
                    for client in self.clients:
                        self._tell(WatchEventKind.WAITING, client, told)
            self.stop.wait(self.interval)

    def _look_on(self) -> None:
        """Check which plan switches serve that another controller has taken over."""
        for client in self.clients:
            with suppress(SwitchUnreachableError), client.another() as observer:
                refuse_other_plan(client.address, served_plan(observer), self.plan.number)

    def _tell(self, kind: WatchEventKind, client: P4RuntimeClient, message: str) -> None:
        self.on_event(WatchEvent(kind, client.address, message))
