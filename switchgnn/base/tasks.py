# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks of worker processes as one line of JSON, from and to frozen dataclasses."""

import json
import threading
import time
from types import TracebackType
from typing import IO, Any, TypeVar

import msgspec

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.records import RecordError, make_record, parse_json

Task = TypeVar("Task")


class TaskError(SwitchGNNError):
    """A worker process was given something that is not its task."""


def task_to_json(task: object) -> str:
    """Return a dataclass as one line of JSON; paths become text."""
    return msgspec.json.encode(task, enc_hook=str).decode()


def task_from_json(kind: type[Task], text: str) -> Task:
    """Read what ``task_to_json`` wrote."""
    try:
        return make_record(kind, parse_json(text.encode()))
    except RecordError as error:
        raise TaskError(
            f"The worker's task cannot be read: {error}. A worker is started by `switchgnn run` or "
            "`switchgnn train`, which write its task as one line of JSON."
        ) from error


# The event that says that the process works, and nothing else.
ALIVE = "alive"
# The event that says why the process ends, where that is not for its parent to guess: with
# `message`, one sentence, and `details`, such as a traceback.
FAILED = "failed"
_EVERY = 2.0
# Processor time between two signs, in seconds. A worker that waits looks about once a second,
# which takes several times as much; one that is stopped, or hangs, takes none.
_LEAST_WORK = 2e-5


class EventWriter:
    """Writes events; threads may share it.

    Args:
        stream: where they go.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, event: str, **values: Any) -> None:  # noqa: ANN401
        """Write one event with its values, at once."""
        line = json.dumps({"event": event, **values}) + "\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()


class Heartbeat:
    """Says every two seconds that this process works. A context manager.

    A thread of its own says it, also while all others compute, but only if they have taken
    processor time since: of a process that hangs nothing is heard.

    Args:
        events: where it says so.
        every: seconds.
    """

    def __init__(self, events: EventWriter, every: float = _EVERY) -> None:
        self._events = events
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        known = _work_of_others()
        while not self._stop.wait(self._every):
            work = _work_of_others()
            if work - known < _LEAST_WORK:
                continue
            known = work
            try:
                self._events.write(ALIVE)
            except OSError:
                # The parent is gone; the next event of the worker itself says so.
                return


def _work_of_others() -> float:
    """Return the processor time of all other threads of this process, in seconds."""
    return time.process_time() - time.thread_time()
