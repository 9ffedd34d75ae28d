"""Signals that end work: `KeyboardInterrupt` that leaves no lock of a library taken."""

import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_LIBRARIES = frozenset({"grpc", "mininet", "subprocess", "tempfile", "threading"})
_DELAY_SECONDS = 0.01
_MOST_DELAYS = 50
_WAIT_SECONDS = 1.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

INTERRUPTED = 130  # the exit code of Ctrl-C: 128 and the number of SIGINT, as shells have it


class Interrupt:
    """A signal handler that raises ``KeyboardInterrupt``, up to half a second late.

    Raised within ``threading.Condition.__exit__`` it would leave a lock taken, on which gRPC then
    waits forever, and within ``tempfile.mkdtemp`` a folder. So SIGALRM repeats the signal while the
    main thread is inside such a library.
    """

    def __init__(self) -> None:
        self._delays = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, now or later."""
        if self._delays < _MOST_DELAYS and _in_library(frame):
            self._delays += 1
            signal.signal(signal.SIGALRM, self)
            signal.setitimer(signal.ITIMER_REAL, _DELAY_SECONDS)
        else:
            self._delays = 0
            raise KeyboardInterrupt


def _in_library(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _LIBRARIES:
            return True
        frame = frame.f_back
    return False


def _handle(handler: Interrupt, numbers: tuple[signal.Signals, ...]) -> dict[signal.Signals, Any]:
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heeded}


@contextmanager
def interruptible() -> Iterator[None]:
    """Use `Interrupt` for Ctrl-C in the block, unless it is ignored or this is another thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _handle(Interrupt(), (signal.SIGINT,))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_like_interrupted() -> None:
    """Let SIGTERM and SIGHUP, unless ``nohup`` ignores it, raise ``KeyboardInterrupt``."""
    _handle(Interrupt(), (signal.SIGTERM, signal.SIGHUP))


def wait_for_interrupt() -> None:
    """Wait until a signal handler raises.

    A signal that arrives just before one of the waits is handled after it.
    """
    while True:
        select.select([], [], [], _WAIT_SECONDS)


class Interruption(Interrupt):
    """Takes the signals that ask the program to end, and notes in `came` whether one has come."""

    def __init__(self) -> None:
        super().__init__()
        self.came = False
        self._at_once = False

    def at_once(self) -> None:
        """Let the first signal raise ``KeyboardInterrupt`` from now on."""
        self._at_once = True

    def __enter__(self) -> "Interruption":
        self._before = _handle(self, _ENDING)
        return self

    def __exit__(self, *_: object) -> None:
        self._at_once = False
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal; the first one may raise KeyboardInterrupt, now or later."""
        first = not self.came or number == signal.SIGALRM
        self.came = True
        # A second Ctrl-C must not stop the cleaning up.
        if self._at_once and first:
            super().__call__(number, frame)
