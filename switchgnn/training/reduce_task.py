# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the launcher tells the workers of an all-reduce: the way of each to the switch."""

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from switchgnn.base.tasks import task_from_json, task_to_json
from switchgnn.host.pace import Pace
from switchgnn.host.wire.addresses import Addresses
from switchgnn.training.all_reduce import Reducer
from switchgnn.training.errors import TrainingError

# The environment variable with the path of the file.
VARIABLE = "SWITCHGNN_REDUCE"
_REMEDY = "start the program with `switchgnn launch`, which starts the switch, too"


@dataclass(frozen=True)
class ReduceTask:
    """The task of all workers; worker ``i`` has rank ``i``.

    Attributes:
        session: the number of the switch's install.
        links: ``eth:...`` or ``udp:...`` of each worker.
        addresses: of each worker, and of the switch.
        pace: bounds on sending and waiting.
    """

    session: int
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


def open_reducer(task: ReduceTask, worker: int) -> Reducer:
    """Return the connection of a worker to the switch, before its start."""
    # The stream's native code is compiled or loaded here, and only by programs that reduce.
    module = import_module("switchgnn.host.reduce.reducer")
    reducer: Reducer = module.open_reducer(
        task.links[worker],
        task.addresses[worker],
        worker=worker,
        workers=task.workers,
        session=task.session,
        pace=task.pace,
    )
    return reducer


def open_from_environment(rank: int, size: int) -> Reducer:
    """Return the connection of a worker to the switch, not yet opened."""
    return open_reducer(task_from_environment(size), rank)
