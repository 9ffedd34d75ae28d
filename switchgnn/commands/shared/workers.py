# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Starts one process per worker, follows their reports, and collects their sums."""

import importlib
import json
import logging
import os
import selectors
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from typing import Any, NoReturn, Protocol

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import python_program
from switchgnn.base.tasks import ALIVE, FAILED
from switchgnn.host.pace import Pace
from switchgnn.host.worker import WorkerTask
from switchgnn.topologies import Fabric
from switchgnn.topologies.child import Child, how_it_ended
from switchgnn.topologies.forkserver import Forkserver

WORKER_COMMAND = python_program("switchgnn.commands", "worker")
# In addition to the timeout; a worker must start in this time.
_SILENCE_SECONDS = 10.0
_EXIT_SECONDS = 10.0
_LOOK_SECONDS = 1.0
_MOST_BYTES = 1 << 16
_TRACEBACK = "Traceback (most recent call last):"
_MOST_LINES = 200
_LOG = logging.getLogger(__name__)

ProgressListener = Callable[[float, int], None]
# Called with (worker, event) for each event before the last.
EventListener = Callable[[int, dict[str, Any]], None]


class _JsonTask(Protocol):
    """The task of a worker process."""

    @property
    def worker(self) -> int: ...
    @property
    def pace(self) -> Pace: ...
    def to_json(self) -> str: ...


class WorkerError(SwitchGNNError):
    """A worker process failed; the message is its own."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


@dataclass(frozen=True)
class WorkerOutcome:
    """The last report of a worker.

    Attributes:
        seconds: time of its exchanges.
        round_seconds: time of each exchange.
        processor_seconds: processor time in them.
        counters: its counters by name.
        traffic: frames and bytes by direction, as its socket counted them.
        faults: faults injected on its link, by direction and name.
    """

    seconds: float
    round_seconds: list[float]
    processor_seconds: float
    counters: dict[str, int]
    traffic: dict[str, int]
    faults: dict[str, dict[str, int]]


def run_workers(
    fabric: Fabric,
    tasks: Sequence[WorkerTask],
    progress: ProgressListener,
    *,
    command: Sequence[str] = WORKER_COMMAND,
    listen: EventListener | None = None,
) -> list[WorkerOutcome]:
    """Run all tasks at once, each at its worker's end of the fabric."""
    done, steps = [0.0] * len(tasks), [0] * len(tasks)

    def hear(worker: int, event: dict[str, Any]) -> None:
        if listen is not None:
            listen(worker, event)
        if event["event"] == "progress":
            done[worker], steps[worker] = event["done"], event["steps"]
            progress(sum(done), max(steps) * len(tasks))

    children = [fabric.worker_child(task.worker, command) for task in tasks]
    finished = follow_workers(children, tasks, hear)
    return [_outcome(event) for event in finished]


def follow_workers(
    children: Sequence[Child], tasks: Sequence[_JsonTask], listen: EventListener
) -> list[dict[str, Any]]:
    """Start the workers, give each its task, and return the last event of each."""
    with ExitStack() as stack:
        for child in children:
            stack.enter_context(child)
        for child, task in zip(children, tasks, strict=True):
            # A worker that has ended already is noticed below.
            with suppress(BrokenPipeError):
                child.stdin.write(task.to_json() + "\n")
                child.stdin.close()
        timeout = max(task.pace.timeout for task in tasks) + _SILENCE_SECONDS
        return _follow(children, timeout, listen)


def _follow(
    children: Sequence[Child], timeout: float, listen: EventListener
) -> list[dict[str, Any]]:
    finished: dict[int, dict[str, Any]] = {}
    silence = _Silence(len(children), timeout)
    with selectors.DefaultSelector() as selector:
        for worker, child in enumerate(children):
            selector.register(child.stdout, selectors.EVENT_READ, (worker, _ChildLines(child)))
        _LOG.info("%d workers begin", len(children))
        while len(finished) < len(children):
            for key, _ in selector.select(timeout=_LOOK_SECONDS):
                worker, lines = key.data
                new = lines.read()
                if new is None:
                    _raise_cause(selector)
                    _fail(children, worker)
                silence.ends(worker)
                for event in map(json.loads, new):
                    _raise_if_failed(worker, event)
                    if event["event"] == "finished":
                        _LOG.info("Worker %d has finished", worker)
                        finished[worker] = event
                        selector.unregister(key.fileobj)
                    elif event["event"] != ALIVE:
                        listen(worker, event)
            silence.check(finished.keys())
    return [finished[worker] for worker in range(len(children))]


class _ChildLines:
    """The lines of a child's standard output."""

    def __init__(self, child: Child) -> None:
        self._file = child.stdout.fileno()
        self._rest = b""

    def read(self) -> list[bytes] | None:
        """Wait for bytes; return the complete lines, or None at the end."""
        new = os.read(self._file, _MOST_BYTES)
        *lines, self._rest = (self._rest + new).split(b"\n")
        return lines if new else None


class _Silence:
    """How long each worker has been silent, in seconds."""

    def __init__(self, workers: int, longest: float) -> None:
        self._longest = longest
        self._seconds = [0.0] * workers
        self._checked = time.monotonic()

    def ends(self, worker: int) -> None:
        """Note an event of a worker."""
        self._seconds[worker] = 0.0

    def check(self, finished: Collection[int]) -> None:
        """Count the time; raise WorkerError for workers that were silent for too long."""
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


def _outcome(event: dict[str, Any]) -> WorkerOutcome:
    return WorkerOutcome(**{field.name: event[field.name] for field in fields(WorkerOutcome)})


def _raise_cause(selector: selectors.BaseSelector) -> None:
    """Raise the error that another worker reported: this one may have ended because of it.

    The worker at fault reports its error before other workers can notice its end.
    """
    for key, _ in selector.select(timeout=0):
        worker, lines = key.data
        for event in map(json.loads, lines.read() or ()):
            _raise_if_failed(worker, event)


def _raise_if_failed(worker: int, event: dict[str, Any]) -> None:
    if event["event"] == FAILED:
        raise WorkerError(f"Worker {worker}: {event['message']}", event["details"])


def _fail(children: Sequence[Child], worker: int) -> NoReturn:
    child = children[worker]
    code = child.wait(_EXIT_SECONDS)
    raise WorkerError(
        f"Worker {worker} {how_it_ended(code)}: {child.last_words()}", _traceback(child)
    )


def _traceback(child: Child) -> str:
    """Return the last traceback of a child, or an empty text."""
    said = child.said()
    starts = [number for number, line in enumerate(said) if line.endswith(_TRACEBACK)]
    return "\n".join(said[starts[-1] :][-_MOST_LINES:]) if starts else ""


# The imports of the forked processes.
_MODULES = (
    "switchgnn.softswitch.daemon.command",
    "switchgnn.host.worker",
    "switchgnn.host.reduce.worker",
)


def fork_nursery() -> Forkserver:
    """Return a nursery, not yet started, that is forked from this process with its modules."""
    for name in _MODULES:
        importlib.import_module(name)
    return Forkserver()
