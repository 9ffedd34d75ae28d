"""All-reduces in the background: a thread that steps a stream, and futures for the results."""

import threading
from collections import deque
from concurrent.futures import Future
from typing import Any

from numpy.typing import NDArray

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.base.errors import HostError
from switchgnn.host.reduce.reduction import SUM, Call, Reduction, check_tensor
from switchgnn.host.reduce.stream import ReduceStream

# Seconds that the thread waits for frames at most, and after which it sees new tensors.
_WAIT = 0.005
# Seconds between two steps without tensors: for signs of life, and the questions of others.
_IDLE_WAIT = 0.1


class ReducerClosedError(HostError):
    """The reducer was closed before an all-reduce was complete."""


# A tensor, how to reduce it, whether its frames have the lowest class, and the future of its sums.
_Submitted = tuple[NDArray[Any], Call, bool, "Future[NDArray[Any]]"]


class Reducer:
    """Runs the all-reduces of one worker on a thread of its own. A context manager.

    All methods may be called from any thread, but all workers must submit in the same order. The
    stream must have started; from now on only the reducer's thread uses it, with `clock`, which is
    its own. Its link must stay open until the reducer is closed.
    """

    def __init__(self, stream: ReduceStream, clock: Clock = SYSTEM_CLOCK) -> None:
        self._stream, self._clock = stream, clock
        self.timeout = stream.timeout  # what is known about the switch
        self.seconds = 0.0  # for which all-reduces were under way
        self._changed = threading.Condition()
        self._submitted: deque[_Submitted] = deque()
        self._running: deque[tuple[Reduction, Future[NDArray[Any]]]] = deque()
        self._closing = self._aborted = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="all-reduce", daemon=True)
        self._thread.start()

    def submit(
        self, values: NDArray[Any], call: Call = SUM, *, late: bool = False
    ) -> "Future[NDArray[Any]]":
        """Return a future for the sums of a tensor over all workers, as of `ReduceStream.submit`.

        It cannot be cancelled, as the other workers need this one's values. Errors of the stream
        are set there, and raised here by later calls.
        """
        check_tensor(values)
        future: Future[NDArray[Any]] = Future()
        future.set_running_or_notify_cancel()
        with self._changed:
            if self._error is not None:
                raise self._error
            if self._closing:
                raise ReducerClosedError("The reducer is closed: submit tensors before.")
            self._submitted.append((values, call, late, future))
            self._changed.notify()
        return future

    def close(self, *, abort: bool = False) -> None:
        """Finish the submitted all-reduces and end the thread; twice does nothing.

        `abort`: give them up instead; their futures then raise ReducerClosedError.
        """
        with self._changed:
            self._closing = True
            self._aborted |= abort
            self._changed.notify()
        self._thread.join()

    def __enter__(self) -> "Reducer":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.close(abort=error is not None)

    def _run(self) -> None:
        try:
            while self._accept():
                idle, started = self._stream.idle, self._clock.now()
                self._stream.step(0.0 if idle else _WAIT)
                self.seconds += 0.0 if idle else self._clock.now() - started
                self._resolve()
        except BaseException as error:  # raised where results are awaited
            self._fail(error)
        else:
            if self._running or self._submitted:
                self._fail(ReducerClosedError("The reducer was closed before it was done."))

    def _accept(self) -> bool:
        with self._changed:
            if self._stream.idle and not self._submitted and not self._closing:
                self._changed.wait(_IDLE_WAIT)
            if self._aborted:
                return False
            # Nothing can be submitted after that.
            if self._closing and self._stream.idle and not self._submitted:
                return False
        while self._submitted:
            values, call, late, future = self._submitted[0]
            self._running.append((self._stream.submit(values, call, late=late), future))
            self._submitted.popleft()
        self._resolve()
        return True

    def _resolve(self) -> None:
        while self._running and self._running[0][0].done:
            reduction, future = self._running.popleft()
            future.set_result(reduction.result)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = error
            pending = [future for _, future in self._running]
            pending += [future for *_, future in self._submitted]
            self._running.clear()
            self._submitted.clear()
        for future in pending:
            future.set_exception(error)
