# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Starts one process per worker, follows their reports, and collects their sums."""

import json
import selectors
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from switchgnn.errors import SwitchGNNError
from switchgnn.host.pace import Pace
from switchgnn.host.worker import WorkerTask
from switchgnn.python_program import python_program
from switchgnn.topologies import Fabric
from switchgnn.topologies.child import Child

WORKER_COMMAND = python_program("switchgnn.commands", "worker")
_SILENCE_SECONDS = 10.0
_EXIT_SECONDS = 10.0

ProgressListener = Callable[[int, int], None]
# Called with (worker, event) for whatever a worker says before it has finished.
EventListener = Callable[[int, dict[str, Any]], None]


class Task(Protocol):
    """What a worker process is to do."""

    @property
    def worker(self) -> int:
        """Its number."""

    @property
    def pace(self) -> Pace:
        """Its bounds on waiting."""

    def to_json(self) -> str:
        """Return the task as one line of JSON."""


class WorkerError(SwitchGNNError):
    """A worker process failed; the message is its own."""


@dataclass(frozen=True)
class WorkerOutcome:
    """What a worker reported when it had finished.

    Attributes:
        seconds: time of its exchanges.
        tally: its counters by name.
        traffic: frames and bytes by direction, as its socket counted them.
        faults: faults injected on its link, by direction and name.
    """

    seconds: float
    tally: dict[str, int]
    traffic: dict[str, int]
    faults: dict[str, dict[str, int]]


def run_workers(
    fabric: Fabric,
    tasks: Sequence[WorkerTask],
    progress: ProgressListener,
    *,
    command: Sequence[str] = WORKER_COMMAND,
) -> list[WorkerOutcome]:
    """Run all tasks at once, each at its worker's end of the fabric.

    Args:
        fabric: a running fabric with the plan installed.
        tasks: one per worker, in order.
        progress: called with (steps done by all, steps of all).
        command: starts a worker; benchmarks have variants.

    Returns:
        What each worker reported, in order.

    Raises:
        WorkerError: a worker failed, died or fell silent; the others are stopped.
    """
    done, steps = [0] * len(tasks), [0] * len(tasks)

    def listen(worker: int, event: dict[str, Any]) -> None:
        if event["event"] == "progress":
            done[worker], steps[worker] = event["done"], event["steps"]
            progress(sum(done), max(steps) * len(tasks))

    children = [fabric.worker_child(task.worker, command) for task in tasks]
    finished = follow_workers(children, tasks, listen)
    return [_outcome(event) for event in finished]


def follow_workers(
    children: Sequence[Child], tasks: Sequence[Task], listen: EventListener
) -> list[dict[str, Any]]:
    """Start the workers, give each its task, and return the last event of each.

    Args:
        children: one process per worker, not yet started. It takes a task as one line of JSON
            on its standard input, reports events in such lines on its standard output, and
            ends with the event ``finished``.
        tasks: one per worker, in the same order.
        listen: called for every event before the last.

    Returns:
        The event ``finished`` of each worker.

    Raises:
        WorkerError: a worker failed, died or fell silent; the others are stopped.
    """
    with ExitStack() as stack:
        for child in children:
            stack.enter_context(child)
        for child, task in zip(children, tasks, strict=True):
            child.stdin.write(task.to_json() + "\n")
            child.stdin.close()
        patience = max(task.pace.patience for task in tasks) + _SILENCE_SECONDS
        return _follow(children, patience, listen)


def _follow(
    children: Sequence[Child], patience: float, listen: EventListener
) -> list[dict[str, Any]]:
    finished: dict[int, dict[str, Any]] = {}
    deadline = time.monotonic() + patience
    with selectors.DefaultSelector() as selector:
        for worker, child in enumerate(children):
            selector.register(child.stdout, selectors.EVENT_READ, worker)
        while len(finished) < len(children):
            for key, _ in selector.select(timeout=1.0):
                worker = key.data
                line = children[worker].stdout.readline()
                if not line:
                    _fail(children, worker)
                deadline = time.monotonic() + patience
                event = json.loads(line)
                if event["event"] == "finished":
                    finished[worker] = event
                    selector.unregister(key.fileobj)
                else:
                    listen(worker, event)
            if time.monotonic() > deadline:
                silent = [str(w) for w in range(len(children)) if w not in finished]
                raise WorkerError(f"No word from worker {', '.join(silent)} for {patience:g} s.")
    return [finished[worker] for worker in range(len(children))]


def _outcome(event: dict[str, Any]) -> WorkerOutcome:
    return WorkerOutcome(event["seconds"], event["tally"], event["traffic"], event["faults"])


def _fail(children: Sequence[Child], worker: int) -> None:
    child = children[worker]
    code = child.wait(_EXIT_SECONDS)
    raise WorkerError(f"Worker {worker} stopped with code {code}: {child.last_words()}")
