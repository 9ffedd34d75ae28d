"""Keeps the jobs of switches that restart, and a plan installed unless its job has another."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.machine import Amount
from switchgnn.controller.admission import DEFAULT_REQUEST, JobRequest
from switchgnn.controller.base.errors import (
    ControllerError,
    NoPrimaryError,
    NotPrimaryError,
    OtherPlanError,
    PipelineMissingError,
    PlanRefusedError,
    SwitchUnreachableError,
)
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.change import InstallReport, SwitchContents, read_state
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.controls.session import Session
from switchgnn.controller.install import DesiredStates, MakeExecutor, Share, install_each
from switchgnn.controller.p4runtime.client import P4RuntimeClient, program_cookie
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.target import SwitchInstall, refuse_other_plan, served_jobs, served_plan
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
    request: JobRequest = DEFAULT_REQUEST,
    *,
    on_event: Callable[[WatchEvent], None],
    stop: Stop,
    interval: float = 1.0,
    clock: Clock = SYSTEM_CLOCK,
    pool: MakeExecutor = ThreadPoolExecutor,
) -> None:
    """Install a plan and keep it installed until ``stop`` is set, with the switches' other jobs.

    A restarted switch gets back all jobs that it had at the last look. Switches with another
    primary controller, such as a run, or with another plan for the job, even one installed later,
    are left alone.

    Args:
        shares: what each switch serves, all of the same plan; clients are closed at the end.
        desired: what the switches shall hold.
        request: the job of the plan.
        on_event: called from this thread with everything that happens.
        stop: ends the watch within about a second.
        interval: seconds between two looks at the switches.
        clock: of the reports.
        pool: makes what works on all switches at once.

    Raises ControllerError if the first install fails; NotPrimaryError if a switch has a primary
    controller already, or OtherPlanError if it serves another plan.
    """
    clients = [_watching(share.switch) for share in shares]

    def bring() -> InstallReport:
        return install_each(
            [replace(share, switch=client) for share, client in zip(shares, clients, strict=True)],
            desired,
            request,
            replace_others=False,
            clock=clock,
            pool=pool,
        )

    own = _Own(shares[0].plan, request.name, bring)
    _watch(_Watcher(clients, desired.program, own, on_event, stop, interval, clock))


def watch_jobs(
    switches: Sequence[str | P4RuntimeClient],
    program: Program,
    *,
    on_event: Callable[[WatchEvent], None],
    stop: Stop,
    interval: float = 1.0,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Give restarted switches their jobs back until ``stop`` is set; see ``watch``."""
    clients = [_watching(switch) for switch in switches]
    _watch(_Watcher(clients, program, None, on_event, stop, interval, clock))


def _watching(switch: str | P4RuntimeClient) -> P4RuntimeClient:
    if isinstance(switch, P4RuntimeClient):
        return switch
    return P4RuntimeClient(switch, deadline=WATCH_DEADLINE)


def _watch(watcher: "_Watcher") -> None:
    try:
        for client in watcher.clients:
            # The lowest election id displaces no other controller. Any other one might outrank a
            # primary, so a switch that has one is refused.
            if client.election_id > _LOWEST_ELECTION_ID:
                with suppress(NoPrimaryError), client.another(_LOOKING_ON, primary=True):
                    pass  # Some switches make us the primary where there is no other.
        watcher.run()
    finally:
        for client in watcher.clients:
            client.close()


@dataclass(frozen=True)
class _Own:
    """The plan that a watch installs itself."""

    plan: SwitchPlan
    job: str
    bring: Callable[[], InstallReport]


@dataclass
class _Watcher:
    clients: Sequence[P4RuntimeClient]
    program: Program
    own: _Own | None
    on_event: Callable[[WatchEvent], None]
    stop: Stop
    interval: float
    clock: Clock
    # What each switch had at the last look.
    _kept: dict[str, SwitchContents] = field(default_factory=dict)

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
                        f"Switch {client.address} no longer serves its jobs, or no longer obeys "
                        "this controller.",
                    )
                self._restore()

    def _install(self) -> None:
        """Restore switches that have lost everything, with sessions; install the own plan."""
        for client in self.clients:
            client.open()
            self._give_back(client)
            self._keep(client)
        if self.own is not None:
            sentences = self.own.bring().sentences()
            for client in self.clients:
                self._keep(client)
            for client, sentence in zip(self.clients, sentences, strict=True):
                self._tell(WatchEventKind.INSTALLED, client, sentence)

    def _give_back(self, client: P4RuntimeClient) -> None:
        """Write what a switch had before it restarted; its windows of tags are lost."""
        kept = self._kept.get(client.address)
        target = SwitchInstall(client, self.program, _layout(self.program))
        target.look()
        if kept is None or target.newest_session or served_jobs(client):
            return
        try:
            restored = target.restore(kept)
        except BaseException:
            target.go_back()
            raise
        jobs = kept.jobs(_layout(self.program))
        names = ", ".join(place.name for place in jobs)
        self._tell(
            WatchEventKind.INSTALLED,
            client,
            f"Switch {client.address}: {Amount(restored):entry} of {Amount(len(jobs)):job} "
            f"restored ({names}).",
        )

    def _keep(self, client: P4RuntimeClient) -> bool:
        """Return whether a switch has had jobs; read it if its sessions have changed."""
        layout = _layout(self.program)
        if client.get_pipeline_cookie() != program_cookie(self.program):
            return False
        client.layout = layout
        kept, job, session = self._kept.get(client.address), Jobs(layout), Session(layout)
        if not job.newest(client.read_default(job.table)):
            return False
        sessions = session.decode(client.read_rows(session.table))
        if kept is None or session.decode(kept.rows[Session.name]) != sessions:
            self._kept[client.address] = read_state(client, layout)
        return True

    def _serves(self, client: P4RuntimeClient) -> bool:
        """Return whether a switch has its jobs; remember those that it has got since."""
        if not client.alive:
            return False
        if not self._keep(client):
            # It has never had any, or another program with jobs of somebody else.
            known = client.address in self._kept
            return self.own is None and (not known or bool(served_jobs(client)))
        if self.own is None:
            return True
        served = self._served(client.address, self.own.job)
        refuse_other_plan(client.address, self.own.job, served, self.own.plan.manifest.number)
        return served == self.own.plan.manifest.number

    def _served(self, address: str, job: str) -> int:
        """Return the number of a job's plan at the last look; 0: none."""
        kept, layout = self._kept[address], _layout(self.program)
        sessions = Session(layout).decode(kept.rows[Session.name])
        named = [each.job for each in kept.jobs(layout) if each.name == job]
        own = [sessions[number].plan for number in named if number in sessions]
        return own[0] if own else 0

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
        """Keep the jobs of switches that another controller has taken over; check the own plan."""
        own = self.own
        for client in self.clients:
            absent = suppress(SwitchUnreachableError, PipelineMissingError)
            with absent, client.another() as observer:
                self._keep(observer)
                if own is not None:
                    served = served_plan(observer, own.job)
                    refuse_other_plan(client.address, own.job, served, own.plan.manifest.number)

    def _tell(self, kind: WatchEventKind, client: P4RuntimeClient, message: str) -> None:
        self.on_event(WatchEvent(kind, client.address, message))


def _layout(program: Program) -> Layout:
    return Layout.from_text(program.p4info)
