"""Disturbances that begin in the middle of a training, and trainings with one."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import BenchError
from bench.testbeds.forkserver import NewForkserver
from switchgnn.base.tasks import until_over
from switchgnn.jobs.runner import RunObserver
from switchgnn.jobs.workers import ENVIRONMENT, imported_before_forks
from switchgnn.topologies import Fabric

if TYPE_CHECKING:
    from switchgnn.jobs.train import TrainJob
    from switchgnn.jobs.train_report import TrainReport
    from switchgnn.training.data.dataset import Dataset

# Seconds in which a slowed process runs and rests once.
_PERIOD = 0.05
# As the fabric limits links: frames of a higher priority leave first.
_LIMIT = (
    "qdisc replace dev {0} root handle 7: htb default 1",
    "class add dev {0} parent 7: classid 7:1 htb rate {1}Mbit burst 15k quantum 1514",
    "qdisc add dev {0} parent 7:1 handle 8: pfifo_fast",
)
# Enters a fabric's disturbance, which lasts until the end of the block.
Disturbance = Callable[[Fabric], AbstractContextManager[None]]


@contextmanager
def _slowed(process: int, share: float) -> Iterator[None]:
    """Let a process run for a share of the time only."""

    def run(over: threading.Event) -> None:
        while not over.wait(_PERIOD * share):
            os.kill(process, signal.SIGSTOP)
            over.wait(_PERIOD * (1 - share))
            os.kill(process, signal.SIGCONT)

    def until_it_ends(over: threading.Event) -> None:
        with suppress(ProcessLookupError):
            run(over)

    try:
        with until_over(until_it_ends, "slow"):
            yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


def slow_switch(share: float) -> Disturbance:
    """Give the switch a share of its processor time."""
    return lambda fabric: _slowed(fabric.switch_processes[0], share)


def slow_worker(share: float) -> Disturbance:
    """Give worker 0 a share of its processor time."""
    return lambda fabric: _slowed(_process_that_logs_to("worker-0.log", fabric), share)


def dead_switch() -> Disturbance:
    """End the switch."""

    @contextmanager
    def begin(fabric: Fabric) -> Iterator[None]:
        os.kill(fabric.switch_processes[0], signal.SIGKILL)
        yield

    return begin


def slow_link(megabits: float) -> Disturbance:
    """Limit both directions of worker 0's link, which is one of Mininet."""

    @contextmanager
    def begin(fabric: Fabric) -> Iterator[None]:
        _, own, *_ = fabric.worker_link(0).split(":")
        namespaces = fabric.worker_namespace(0), fabric.switch_namespace(0)
        other = next(name for name in _interfaces(namespaces[1]) if name.endswith("-eth1"))
        for name, namespace in zip((own, other), namespaces, strict=True):
            for words in _LIMIT:
                _in(namespace, "tc", *words.format(name, megabits).split())
        yield

    return begin


def _in(namespace: Path, *command: str) -> str:
    words = ["nsenter", f"--net={namespace}", *command]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode:
        raise BenchError(f"`{' '.join(words)}` failed: {made.stderr.strip()}")
    return made.stdout


def _interfaces(namespace: Path) -> list[str]:
    links = _in(namespace, "ip", "-o", "link").splitlines()
    return [line.split(": ")[1].partition("@")[0] for line in links]


def _process_that_logs_to(name: str, fabric: Fabric) -> int:
    for file in Path("/proc").glob("[0-9]*/fd/2"):
        with suppress(OSError):
            if file.readlink() == fabric.logs / name:
                return int(file.parts[2])
    raise BenchError(f"No process logs to {name}.")


@dataclass
class _Disturbing(RunObserver):
    """Begins a disturbance when worker 0 has done some epochs."""

    disturbance: Disturbance | None
    after: int

    def __post_init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._fabric: Fabric | None = None

    @contextmanager
    def over(self, transport: str, fabric: Fabric | None, *_: object) -> Iterator[None]:
        """Remember the network."""
        self._fabric = fabric
        with self._stack:
            yield

    def event(self, worker: int, event: dict[str, Any]) -> None:
        """Count the epochs of worker 0."""
        due = worker == 0 and event["event"] == "epoch" and event["epoch"] == self.after
        if due and self.disturbance is not None and self._fabric is not None:
            self._stack.enter_context(self.disturbance(self._fabric))


def train_disturbed(
    job: "TrainJob", data: "Dataset", disturbance: Disturbance | None, after: int
) -> "TrainReport":
    """Train with a disturbance that begins after some epochs."""
    from switchgnn.jobs.train import run_training  # noqa: PLC0415

    observer = _Disturbing(disturbance, after)
    with NewForkserver(imported_before_forks(), ENVIRONMENT) as forkserver:
        return run_training(
            job, data, lambda *_: None, lambda _: None, forkserver=forkserver, observer=observer
        )
