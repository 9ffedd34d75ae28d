"""Tasks of worker processes as one line of JSON, and the events that they write."""

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any, TypeVar

import msgspec

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.records import RecordError, make_record, parse_json

Task = TypeVar("Task")


class TaskError(SwitchGNNError):
    """A worker process got an invalid task."""


def task_to_json(task: object) -> str:
    """Return a dataclass as one line of JSON; paths become text."""
    return msgspec.json.encode(task, enc_hook=str).decode()


def task_from_json(kind: type[Task], text: str) -> Task:
    """Return the task that `task_to_json` wrote, or raise TaskError."""
    try:
        return make_record(kind, parse_json(text.encode()))
    except RecordError as error:
        raise TaskError(
            f"The worker's task cannot be read: {error}. A worker is started by `switchgnn run` or "
            "`switchgnn train`, which write its task as one line of JSON."
        ) from error


ALIVE = "alive"
# With `message`, one sentence, and `details`, such as a traceback.
FAILED = "failed"
_EVERY = 2.0
# Processor seconds between two heartbeats. A waiting worker polls about once a second, which takes
# several times as much; a stopped or hanging one takes none.
_LEAST_WORK = 2e-5


class EventWriter:
    """Writes events to a stream, from any thread."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, event: str, **values: Any) -> None:  # noqa: ANN401
        """Write one event with its values, and flush."""
        line = json.dumps({"event": event, **values}) + "\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()


class Heartbeat:
    """Writes ALIVE every two seconds from its own thread. A context manager.

    It is silent while the other threads take no processor time, as in a process that hangs.
    """

    def __init__(self, events: EventWriter, every: float = _EVERY) -> None:
        self._events = events
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
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
                # The parent is gone; the worker's next event fails as well.
                return


def _work_of_others() -> float:
    """Return the processor seconds of all other threads."""
    return time.process_time() - time.thread_time()


def run_task(kind: type[Task], line: str, work: Callable[[Task, EventWriter], None]) -> None:
    """Do a task, given as one line of JSON, and write its events to standard output.

    An error with details is reported before other workers fail because this one ends.
    """
    events = EventWriter(sys.stdout)
    with Heartbeat(events):
        try:
            work(task_from_json(kind, line), events)
        except SwitchGNNError as error:
            if error.details:
                events.write(FAILED, message=str(error), details=error.details)
            raise
