"""The controller in virtual time: it installs plans, and watches that they stay."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from switchgnn.controller import JobRequest, P4RuntimeClient, Share, install_each
from switchgnn.controller.base.errors import ControllerError, PipelineMissingError, UnknownJobError
from switchgnn.controller.base.place import DEFAULT_JOB
from switchgnn.controller.jobs import remove_job
from switchgnn.controller.watch import WatchEvent, WatchEventKind, watch
from switchgnn.p4src import Program
from tests.simulation.parts.control_line import ControlLine, VirtualConnection
from tests.simulation.subject import PlannedSubject
from tests.simulation.timing import SECOND, Scheduler, Task, VirtualClock

# Seconds, as the command line has them.
_DEADLINE = 1.0
_AGAIN = 1.0
_NAME = "controller"
Result = TypeVar("Result")


class InOrder(Executor):
    """Runs each task at once, in order."""

    def __init__(self, _workers: int) -> None:
        """Accept any number of workers."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class _Stop:
    """Ends a watch; as ``threading.Event``."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float) -> bool:
        if not self._set:
            self._task.wait(timeout)
        return self._set

    def set(self) -> None:
        self._set = True
        self._task.tell(0)


@dataclass(frozen=True)
class Order:
    """A job to be installed in a new session."""

    job: str  # its name
    subject: PlannedSubject
    ready: Callable[[int], None]  # called with the session


class VirtualController:
    """A controller process."""

    def __init__(
        self,
        subject: PlannedSubject,
        lines: Sequence[ControlLine],
        program: Program,
        scheduler: Scheduler,
    ) -> None:
        self.watching = False  # whether it keeps switches in a session
        self._subject = subject
        self._lines = lines
        self._program = program
        self._scheduler = scheduler
        self._clock = VirtualClock(scheduler)
        self._task: Task | None = None
        self._stop: _Stop | None = None
        self._orders: list[Order] = []
        # those whose workers wait for the others: with the session, and starts of switches so far
        self._installed: list[tuple[Order, int, int]] = []
        self._removes = False

    def open_session(self, order: Order) -> None:
        """Install a job in a new session, and keep all until `close_session`."""
        self._orders.append(order)
        # One restarted since the last session was closed still watches that session.
        self._leave()
        self._begin()

    def close_session(self) -> None:
        """Stop watching; the switches keep what they have."""
        self._leave()
        self.watching = False

    def _leave(self) -> None:
        if self._stop is not None:
            self._stop.set()
        self._stop = None

    def restart(self, seconds: float, *, removes: bool = False) -> None:
        """End it, and start it again some seconds later; it may remove the job before all else."""
        self._removes = self._removes or removes
        if self._task is None or self._task.ended:
            return
        self._task.kill()
        self.watching = False
        self._scheduler.trace.note(_NAME, "ends")
        self._scheduler.after(int(seconds * SECOND), self._begin)

    @property
    def error(self) -> Exception | None:
        return self._task.error if self._task is not None else None

    def end(self) -> None:
        if self._task is not None:
            self._task.kill()

    def _begin(self) -> None:
        if self._task is not None and not self._task.ended:
            return
        self._scheduler.trace.note(_NAME, "starts")
        self._task = Task(self._scheduler, _NAME, self._work)
        self._task.start()

    def _work(self, task: Task) -> None:
        for line in self._lines:
            line.hold(task)
        if self._removes:
            self._try(task, "remove", self._remove)
            self._removes = False
        while True:
            while self._orders:
                self._install(task, self._orders[0])
                if not self._orders:
                    self._begin_workers()
            self._watch(task)
            # The next session may have been asked for before this one was left.
            if not self._orders:
                return

    def _try(self, task: Task, what: str, act: Callable[[list[P4RuntimeClient]], Result]) -> Result:
        while True:
            clients = self._clients()
            try:
                return act(clients)
            except ControllerError as error:
                self._scheduler.trace.note(_NAME, f"cannot {what}: {type(error).__name__}")
            finally:
                for client in clients:
                    client.close()
            task.sleep(int(_AGAIN * SECOND))

    def _begin_workers(self) -> None:
        """Let the workers of all installed jobs begin; install again what was lost meanwhile."""
        installed, self._installed = self._installed, []
        for order, session, starts in installed:
            if starts == self._starts:
                order.ready(session)
            else:
                self._orders.append(order)

    @property
    def _starts(self) -> int:
        return sum(line.switch.starts for line in self._lines)

    def _remove(self, clients: list[P4RuntimeClient]) -> None:
        for client in clients:
            client.open()
            # It may be gone already, or the switch may have restarted.
            with suppress(UnknownJobError, PipelineMissingError):
                remove_job([client], DEFAULT_JOB)
        self._installed = [
            (order, session, 0 if order.job == DEFAULT_JOB else starts)
            for order, session, starts in self._installed
        ]
        self._scheduler.trace.note(_NAME, "has removed the job")

    def _install(self, task: Task, order: Order) -> None:
        def install(clients: list[P4RuntimeClient]) -> int:
            return install_each(
                self._shares(order.subject, clients),
                order.subject.desired,
                JobRequest(order.job),
                new_session=True,
                clock=self._clock,
                pool=InOrder,
            ).session

        session = self._try(task, "install", install)
        # The watch of the last session may have restored that one; nothing watches this one yet.
        self.watching = False
        self._scheduler.trace.note(_NAME, f"has installed session {session}")
        self._orders.remove(order)
        self._installed.append((order, session, self._starts))

    def _watch(self, task: Task) -> None:
        stop = self._stop = _Stop(task)
        while not stop.is_set():
            try:
                watch(
                    self._shares(self._subject, self._clients()),
                    self._subject.desired,
                    on_event=self._hear,
                    stop=stop,
                    clock=self._clock,
                    pool=InOrder,
                )
            except ControllerError as error:
                # A watch ends if its first install fails, and is started again.
                self._scheduler.trace.note(_NAME, f"cannot watch: {type(error).__name__}")
                stop.wait(_AGAIN)

    def _hear(self, event: WatchEvent) -> None:
        self.watching = self.watching or event.kind is WatchEventKind.INSTALLED
        self._scheduler.trace.note(_NAME, f"{event.kind.value} {event.address}")

    def _shares(self, subject: PlannedSubject, clients: list[P4RuntimeClient]) -> list[Share]:
        # The second job is at the first switch only.
        shares = zip(subject.shares, clients, strict=False)
        return [Share(share.plan, share.network, client) for share, client in shares]

    def _clients(self) -> list[P4RuntimeClient]:
        return [self._client(line) for line in self._lines]

    def _client(self, line: ControlLine) -> P4RuntimeClient:
        def connect(_address: str, _tls: object) -> VirtualConnection:
            return VirtualConnection(line, self._scheduler)

        decode = self._subject.answers.decode
        return P4RuntimeClient(line.switch.name, deadline=_DEADLINE, connect=connect, decode=decode)
