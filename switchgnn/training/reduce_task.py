# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the launcher tells the workers of an all-reduce: the way of each to the switch."""

import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from switchgnn.base.tasks import task_from_json, task_to_json
from switchgnn.host.pace import Pace
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import ETHERNET_BYTES, PROTOCOL, feature_frame_bytes
from switchgnn.host.wire.link import check_packets_fit, open_link
from switchgnn.training.all_reduce import Values
from switchgnn.training.errors import TrainingError

# The environment variable with the path of the file.
VARIABLE = "SWITCHGNN_REDUCE"
_LARGEST_PACKET = feature_frame_bytes(256) - ETHERNET_BYTES
_REMEDY = "start the program with `switchgnn launch`, which starts the switch, too"


@dataclass(frozen=True)
class ReduceTask:
    """The task of all workers; worker ``i`` has rank ``i``.

    Attributes:
        session: the number of the switch's install.
        plan_id: the first 32 bits of the digest of the plan that is installed.
        links: ``eth:...`` or ``udp:...`` of each worker.
        addresses: of each worker, and of the switch.
        pace: bounds on sending and waiting.
    """

    session: int
    plan_id: int
    links: tuple[str, ...]
    addresses: tuple[Addresses, ...]
    pace: Pace

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return len(self.links)

    def to_json(self) -> str:
        """Return the task as one line of JSON."""
        return task_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "ReduceTask":
        """Read what :meth:`to_json` wrote."""
        return task_from_json(cls, text)


def task_from_environment(workers: int) -> ReduceTask:
    """Return the task that the launcher wrote for this number of workers.

    Raises:
        RuntimeError: the launcher did not start this process.
        TrainingError: the file cannot be read, or is for another number of workers.
        TaskError: the file holds no task.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        raise RuntimeError(
            f"The backend `switchgnn` finds no {VARIABLE} in the environment: {_REMEDY}."
        )
    try:
        task = ReduceTask.from_json(Path(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingError(f"The task in {name} cannot be read: {error}; {_REMEDY}.") from error
    if task.workers != workers or len(task.addresses) != workers:
        raise TrainingError(
            f"The switch serves {task.workers} workers, but this group has {workers}: start "
            "as many processes as the launcher was asked for."
        )
    return task


def open_from_environment(rank: int, size: int) -> "Connection":
    """Return the connection of a worker to the switch, before its start."""
    return Connection(task_from_environment(size), rank)


class Connection:
    """A worker's connection to the switch: a ``Reducer`` of all_reduce.py."""

    def __init__(self, task: ReduceTask, worker: int) -> None:
        self._task, self._worker = task, worker
        self._open = ExitStack()
        self._reducer: Any = None

    def open(self, agree: Callable[[int], int]) -> None:
        """Query the switch, and begin with the largest number of all workers.

        Raises:
            HostError: the link cannot be opened, or the switch does not answer.
        """
        task, worker = self._task, self._worker
        stream_of = import_module("switchgnn.host.reduce.stream").ReduceStream
        reducer_of = import_module("switchgnn.host.reduce.reducer").Reducer
        check_packets_fit(task.links[worker], _LARGEST_PACKET)
        link = self._open.enter_context(open_link(task.links[worker], PROTOCOL))
        stream = stream_of(
            link,
            task.addresses[worker],
            worker=worker,
            workers=task.workers,
            session=task.session,
            plan_id=task.plan_id,
            pace=task.pace,
        )
        stream.start(agree(stream.query().first))
        self._reducer = reducer_of(stream)

    def submit(self, values: Values, *, average: bool = False) -> "Future[Any]":
        """Queue an array, as ``Reducer.submit``."""
        future: Future[Any] = self._reducer.submit(values, average=average)
        return future

    def close(self, *, abort: bool = False) -> None:
        """End the stream and close the link."""
        try:
            if self._reducer is not None:
                self._reducer.close(abort=abort)
        finally:
            self._open.close()
