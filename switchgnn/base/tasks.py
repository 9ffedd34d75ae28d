"""Tasks of worker processes as one line of JSON, and the events that they write."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
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


@contextmanager
def until_over(run: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run a function in a thread of that name until the block ends, when its event is set."""
    over = threading.Event()
    thread = threading.Thread(target=run, args=(over,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def repeating(write: Callable[[], None], every: float, name: str) -> AbstractContextManager[None]:
    """Call `write` at an interval in seconds, in a thread of that name, until the block ends."""

    def run(over: threading.Event) -> None:
        # Without a parent, the worker's next event fails as well.
        with suppress(OSError):
            while not over.wait(every):
                write()

    return until_over(run, name)


def heartbeat(events: EventWriter, every: float = _EVERY) -> AbstractContextManager[None]:
    """Write ALIVE every two seconds during the block.

    It is silent while the other threads take no processor time, as in a process that hangs.
    """
    known = time.process_time()

    def beat() -> None:
        nonlocal known
        work = time.process_time() - time.thread_time()
        if work - known >= _LEAST_WORK:
            known = work
            events.write(ALIVE)

    return repeating(beat, every, "heartbeat")


def run_task(kind: type[Task], line: str, work: Callable[[Task, EventWriter], None]) -> None:
    """Do a task, given as one line of JSON, and write its events to standard output.

    An error with details is reported before other workers fail because this one ends.
    """
    events = EventWriter(sys.stdout)
    with heartbeat(events):
        try:
            work(task_from_json(kind, line), events)
        except SwitchGNNError as error:
            if error.details:
                events.write(FAILED, message=str(error), details=error.details)
            raise
