"""Starts one process per worker, gives each its task, and follows their reports."""

import ctypes
import importlib
import json
import logging
import os
import selectors
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import how_to_install, python_program
from switchgnn.base.tasks import ALIVE, FAILED, task_to_json
from switchgnn.controller import Counters
from switchgnn.host.base.pace import Pace
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.topologies import Fabric
from switchgnn.topologies.child import Child, how_it_ended
from switchgnn.topologies.forkserver import Forkserver

# In addition to the timeout; a worker must start in this time.
_SILENCE_SECONDS = 10.0
_EXIT_SECONDS = 10.0
_LOOK_SECONDS = 1.0
_MOST_BYTES = 1 << 16
_TRACEBACK = "Traceback (most recent call last):"
_MOST_LINES = 200
_LOG = logging.getLogger(__name__)

# Called with the steps of all workers that are done, and their number.
ProgressListener = Callable[[float, int], None]
# Called with (worker, event) for each event before the last.
EventListener = Callable[[int, dict[str, Any]], None]
_MODULES = ("switchgnn.softswitch.daemon", "switchgnn.host.worker", "switchgnn.host.reduce.worker")
# A worker is suspicious with so many slots released, and so many times those of the others.
_MANY, _TIMES_THE_OTHERS = 100, 10
# Threads of OpenMP that wait for each other would spin, and switch and workers share the cores.
# https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
_PYTORCH, _PYG = "torch", "torch_geometric"
_WORKER = "switchgnn.training.train_worker"
_NVIDIA_DRIVER, _AMD_DEVICE = "libcuda.so.1", Path("/dev/kfd")


class WorkerError(SwitchGNNError):
    """A worker process failed; the message is its own."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


@dataclass(frozen=True)
class WorkerOutcome:
    """The last report of a worker."""

    seconds: float  # time of its exchanges
    round_seconds: list[float]  # time of each exchange
    processor_seconds: float  # processor time in them
    counters: dict[str, int]  # its counters by name
    traffic: dict[str, int]  # frames and bytes by direction, as its socket counted them
    faults: dict[str, dict[str, int]]  # faults injected on its link, by direction and name

    @classmethod
    def of(cls, event: dict[str, Any]) -> "WorkerOutcome":
        """Return what a worker has reported last."""
        return cls(**{field.name: event[field.name] for field in fields(cls)})


def worker_command(name: str) -> tuple[str, ...]:
    """Return the command of a worker process, by a name in ``commands/main.py``."""
    return python_program("switchgnn.commands", name)


def rank_variables(fabric: Fabric, worker: int, per_port: int = 1) -> dict[str, str]:
    """Return the variables of torchrun for a worker, and the interface for Gloo.

    By itself Gloo takes the address of the machine's name.
    """
    _, interface, *_ = fabric.worker_link(worker // per_port).split(":")
    return {
        "RANK": str(worker),
        "WORLD_SIZE": str(fabric.topology.workers * per_port),
        "LOCAL_RANK": str(worker),
        "GLOO_SOCKET_IFNAME": interface if fabric.workers_have_hosts else "lo",
    }


def run_workers(
    fabric: Fabric,
    command: Sequence[str],
    tasks: Sequence[object],
    pace: Pace,
    *,
    progress: ProgressListener = lambda done, total: None,
    listen: EventListener = lambda worker, event: None,
) -> list[dict[str, Any]]:
    """Run the tasks of all workers, each at its end of the fabric; return their last events.

    As many tasks as fit share each link.
    """
    per_port = len(tasks) // fabric.topology.workers
    done, steps = [0.0] * len(tasks), [0] * len(tasks)

    def hear(worker: int, event: dict[str, Any]) -> None:
        listen(worker, event)
        if event["event"] == "progress":
            done[worker], steps[worker] = event["done"], event["steps"]
            progress(sum(done), max(steps) * len(tasks))

    children = [
        fabric.worker_child(
            *(worker, command),
            environment=rank_variables(fabric, worker, per_port),
            per_port=per_port,
        )
        for worker in range(len(tasks))
    ]
    return follow_workers(children, tasks, pace, hear)


def follow_workers(
    children: Sequence[Child], tasks: Sequence[object], pace: Pace, listen: EventListener
) -> list[dict[str, Any]]:
    """Start the workers, give each its task, and return the last event of each."""
    with ExitStack() as stack:
        for child in children:
            stack.enter_context(child)
        for child, task in zip(children, tasks, strict=True):
            # A worker that has ended already is noticed below.
            with suppress(BrokenPipeError):
                child.stdin.write(task_to_json(task) + "\n")
                child.stdin.close()
        return _follow(children, pace.timeout + _SILENCE_SECONDS, listen)


def _follow(
    children: Sequence[Child], timeout: float, listen: EventListener
) -> list[dict[str, Any]]:
    finished: dict[int, dict[str, Any]] = {}
    silence = _Silence(len(children), timeout)
    with ChildLines(children) as output:
        _LOG.info("%d workers begin", len(children))
        while len(finished) < len(children):
            ended = []
            for worker, lines, at_end in output.read(_LOOK_SECONDS):
                silence.ends(worker)
                if at_end and worker not in finished:
                    ended.append(worker)
                for event in map(json.loads, lines):
                    _raise_if_failed(worker, event)
                    if event["event"] == "finished":
                        _LOG.info("Worker %d has finished", worker)
                        finished[worker] = event
                    elif event["event"] != ALIVE:
                        listen(worker, event)
            if ended:
                # The worker at fault reports its error before others notice its end and end, too.
                for worker, lines, _ in output.read(0):
                    for event in map(json.loads, lines):
                        _raise_if_failed(worker, event)
                _fail(children, ended[0])
            silence.check(finished.keys())
    return [finished[worker] for worker in range(len(children))]


class ChildLines:
    """The lines that some children print, as they come. A context manager."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._selector = selectors.DefaultSelector()
        self._begun = [b""] * len(children)
        for number, child in enumerate(children):
            self._selector.register(child.stdout, selectors.EVENT_READ, number)

    def __enter__(self) -> "ChildLines":
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    @property
    def left(self) -> int:
        """The number of children that have not ended."""
        return len(self._selector.get_map())

    def read(self, timeout: float | None = None) -> list[tuple[int, list[bytes], bool]]:
        """Wait for output; return the number, new lines and end of each child that has some."""
        found = []
        for key, _ in self._selector.select(timeout):
            new = os.read(key.fd, _MOST_BYTES)
            *lines, begun = (self._begun[key.data] + new).split(b"\n")
            self._begun[key.data] = begun
            if not new:
                self._selector.unregister(key.fileobj)
                lines += [begun] if begun else []
            found.append((key.data, lines, not new))
        return found


class _Silence:
    def __init__(self, workers: int, longest: float) -> None:
        self._longest = longest
        self._seconds = [0.0] * workers
        self._checked = time.monotonic()

    def ends(self, worker: int) -> None:
        self._seconds[worker] = 0.0

    def check(self, finished: Collection[int]) -> None:
        now = time.monotonic()
        # If this process was stopped, the others may have been, too.
        passed = min(now - self._checked, 2 * _LOOK_SECONDS)
        self._checked = now
        silent = []
        for worker in range(len(self._seconds)):
            self._seconds[worker] += passed
            if worker not in finished and self._seconds[worker] > self._longest:
                silent.append(str(worker))
        if silent:
            raise WorkerError(
                f"No sign of life of worker {', '.join(silent)} for {self._longest:g} s: it is "
                "stopped, or waits for something that does not come."
            )


def _raise_if_failed(worker: int, event: dict[str, Any]) -> None:
    if event["event"] == FAILED:
        raise WorkerError(f"Worker {worker}: {event['message']}", event["details"])


def _fail(children: Sequence[Child], worker: int) -> NoReturn:
    child = children[worker]
    code = child.wait(_EXIT_SECONDS)
    said = child.said()
    starts = [number for number, line in enumerate(said) if line.endswith(_TRACEBACK)]
    traceback = "\n".join(said[starts[-1] :][-_MOST_LINES:]) if starts else ""
    raise WorkerError(f"Worker {worker} {how_it_ended(code)}: {child.last_words()}", traceback)


def command_forkserver() -> Forkserver:
    """Return a forkserver, not yet started, that is forked from this process with its modules."""
    for name in _MODULES:
        importlib.import_module(name)
    return Forkserver()


def releases_between(
    leaf_spine: LeafSpine | None,
    workers: int,
    before: Sequence[Counters],
    after: Sequence[Counters],
) -> tuple[int, ...]:
    """Return the slots released for each worker by its leaf or the only switch."""
    nearest = len(after) if leaf_spine is None else leaf_spine.leaves
    return tuple(
        sum(
            new.releases[worker] - old.releases[worker]
            for old, new in zip(before[:nearest], after[:nearest], strict=True)
        )
        for worker in range(workers)
    )


@contextmanager
def naming_who_releases(
    read: Callable[[], Sequence[Counters]], leaf_spine: LeafSpine | None, workers: int
) -> Iterator[None]:
    """Add workers with too many released slots to the error of a worker in the block.

    `read` returns the counters of each switch.
    """
    before = read()
    try:
        yield
    except WorkerError as error:
        sentence = too_many_releases(releases_between(leaf_spine, workers, before, read()))
        if not sentence:
            raise
        raise WorkerError(f"{error} {sentence}") from error


def too_many_releases(releases: Sequence[int]) -> str:
    """Name the workers with far more released slots than the others; empty: none."""
    sentences = []
    for worker, number in enumerate(releases):
        others = [*releases[:worker], *releases[worker + 1 :]]
        average = sum(others) / len(others) if others else 0.0
        if number >= _MANY and number > _TIMES_THE_OTHERS * average:
            sentences.append(
                f"Worker {worker} had {number:,} slots released, the others {average:,.0f} on "
                "average: it, or its link, is broken."
            )
    return " ".join(sentences)


def require_training(what: str, *packages: str) -> None:
    """Raise an error that names the extra unless the packages are installed; import nothing."""
    for name in packages or (_PYTORCH, _PYG):
        if find_spec(name) is None:
            raise _missing(what, name)


def import_training(module: str, what: str) -> Any:  # noqa: ANN401
    """Import a module of `switchgnn.training` that needs PyTorch for something."""
    try:
        return importlib.import_module(f"switchgnn.training.{module}")
    except ImportError as error:
        raise _missing(what, error.name) from error


def _missing(what: str, name: str | None) -> SwitchGNNError:
    return SwitchGNNError(
        f"{what} needs PyTorch and PyTorch Geometric, but {name} is missing: "
        f"{how_to_install('training')}."
    )


def forks_lose_the_gpu() -> bool:
    """Return whether PyTorch Geometric, imported before a fork, makes PyTorch fail after it.

    Its import initialises the driver of the GPU, which a forked process cannot use. This function
    loads the driver's library without initialising it.
    """
    version = importlib.import_module(f"{_PYTORCH}.version")
    if getattr(version, "hip", None):
        return _AMD_DEVICE.exists()
    if not version.cuda:
        return False
    try:
        ctypes.CDLL(_NVIDIA_DRIVER)
    except OSError:
        return False
    return True


def imported_before_forks() -> tuple[str, ...]:
    """Return the modules that a forkserver of training workers may import."""
    return (_PYTORCH,) if forks_lose_the_gpu() else (_WORKER,)


@contextmanager
def training_forkserver() -> Iterator[Forkserver]:
    """Import PyTorch and PyTorch Geometric, and yield a running forkserver of training workers.

    It is forked before PyTorch computes anything here: a fork of a process with threads of OpenMP
    waits for them forever. https://github.com/pytorch/pytorch/issues/17199
    """
    require_training("Training")
    os.environ.update(ENVIRONMENT)
    for name in imported_before_forks():
        importlib.import_module(name)
    with command_forkserver() as forkserver:
        import_training("trainer", "Training")
        yield forkserver
