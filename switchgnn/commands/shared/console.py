# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The console of all commands: names from users are printed as they are, brackets included."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import typer
from rich.console import Console

from switchgnn.base.interruptible import Interrupt
from switchgnn.commands.shared.workers import WorkerError
from switchgnn.controller import Counters, P4RuntimeClient, read_counters
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.topologies import Ahead


def plain_console(
    *, stderr: bool = False, highlight: bool = True, soft_wrap: bool = False
) -> Console:
    """Make the console of a command; colours of our own are `rich.text.Text`.

    Args:
        stderr: print to standard error.
        highlight: colour numbers and paths on a terminal.
        soft_wrap: leave long lines to the terminal.

    Returns:
        A console that takes no word for markup.
    """
    return Console(stderr=stderr, highlight=highlight, soft_wrap=soft_wrap, markup=False)


class Planned(Protocol):
    """A report that names the strategies of a plan; None where nothing was planned."""

    @property
    def partition(self) -> str | None:
        """Who holds which vertex."""

    @property
    def block_strategy(self) -> str | None:
        """How blocks form."""

    @property
    def send(self) -> str | None:
        """What workers send."""

    @property
    def order(self) -> str | None:
        """In which order they send."""


class Ran(Protocol):
    """A report that says what the embedded switch ran; None where there was none."""

    @property
    def backend(self) -> str | None:
        """What it ran the program as."""

    @property
    def backend_reason(self) -> str | None:
        """Why that is Python where native code might have been."""

    @property
    def compile_seconds(self) -> float | None:
        """How long the compilation took."""


def ran_ahead(ahead: Ahead | None) -> dict[str, Any]:
    """Return the fields of a report about compilation; None for BMv2."""
    return {
        "backend": None if ahead is None else ahead.backend.value,
        "backend_reason": None if ahead is None else ahead.reason,
        "compile_seconds": None if ahead is None else ahead.seconds,
    }


def ran_as(report: Ran, hosts: str | None = None) -> str:
    """Return what comes behind the name of the switch: what its program ran as, and the hosts."""
    words = ""
    if report.backend is not None:
        words = f"; the program runs as {report.backend} code"
        if report.compile_seconds:
            words += f", compiled in {report.compile_seconds:.1f} s"
        if report.backend_reason is not None:
            words += f" ({report.backend_reason.rstrip('.')})"
    return words if hosts is None else f"{words}; hosts run {hosts} code"


def strategies_line(report: Planned) -> str:
    """Say in one line what was planned with; nothing where nothing was planned."""
    names = {
        "partition": report.partition,
        "blocks": report.block_strategy,
        "send": report.send,
        "order": report.order,
    }
    used = [f"{part} {name}" for part, name in names.items() if name is not None]
    return ", ".join(used)


def counted(title: str, counts: dict[str, int]) -> str:
    """Return the counts that are not 0 as a sentence."""
    words = (f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number)
    return f"{title}: {', '.join(words) or 'none'}."


def captured_line(files: Sequence[Path]) -> str:
    """Say where the packets of a run are."""
    size = sum(each.stat().st_size for each in files if each.exists())
    links = f"{len(files)} link{'s' if len(files) > 1 else ''}"
    return f"Packets of {links}: {files[0].parent}, {size:,} bytes; none was left out."


# Work that is shorter than this needs no words.
_QUIET_SECONDS = 2.0


class Steps:
    """Says each step on stderr once the work has taken a while. A context manager.

    Libraries such as METIS let no Python code run until they are done: no spinner turns, and
    Ctrl-C would wait for them. So the words stand before the step begins, and Ctrl-C ends
    the process at once. Nothing that this work leaves can break by that: plans are written
    aside and put into place in one step.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._before: Any = None
        self._pending: str | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(_QUIET_SECONDS, self._speak)
        self._timer.daemon = True

    def __enter__(self) -> "Steps":
        self._start = time.monotonic()
        self._timer.start()
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, signal.SIG_DFL)
        return self

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Let Ctrl-C in the block clean up, as Python does."""
        if self._before is None:
            yield
            return
        signal.signal(signal.SIGINT, self._before)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def tell(self, step: str) -> None:
        """Begin a step."""
        with self._lock:
            self._pending = step
        if time.monotonic() - self._start > _QUIET_SECONDS:
            self._speak()

    def _speak(self) -> None:
        """Say what is being done, once."""
        with self._lock:
            if self._pending is not None:
                seconds = time.monotonic() - self._start
                typer.echo(f"{seconds:7.1f} s  {self._pending}", err=True)
                self._pending = None


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_like_interrupted() -> None:
    """Let SIGTERM and a closed terminal raise ``KeyboardInterrupt``, as Ctrl-C does.

    Under ``nohup`` a closed terminal stays ignored.
    """
    interrupt = Interrupt()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


class Interruption:
    """Takes the signals that ask the program to end. A context manager.

    Attributes:
        came: whether one has come.
    """

    def __init__(self) -> None:
        self.came = False
        self._at_once = False
        self._interrupt = Interrupt()
        self._before: dict[signal.Signals, Any] = {}

    def at_once(self) -> None:
        """Let the first signal raise ``KeyboardInterrupt`` from now on."""
        self._at_once = True

    def later(self) -> None:
        """Only note signals from now on."""
        self._at_once = False
        self._interrupt.cancel()

    def __enter__(self) -> "Interruption":
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        self.later()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        first, self.came = not self.came, True
        # Impatient users press twice; the second time would stop the cleaning up.
        if first and self._at_once:
            self._interrupt(number, frame)


_MANY = 100
_TIMES_THE_OTHERS = 10


def releases_between(
    leaf_spine: LeafSpine | None,
    workers: int,
    before: Sequence[Counters],
    after: Sequence[Counters],
) -> tuple[int, ...]:
    """Return how many slots each worker has had released, by its leaf or the one switch.

    Args:
        leaf_spine: the topology; None for a star.
        workers: their number.
        before: the counters of each switch, leaves first.
        after: the same, later.

    Returns:
        One number per worker.
    """
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
    clients: Sequence[P4RuntimeClient], leaf_spine: LeafSpine | None, workers: int
) -> Iterator[None]:
    """Let the error of a worker say as well who has had too many slots released.

    Args:
        clients: of all switches, leaves first.
        leaf_spine: the topology; None for a star.
        workers: their number.

    Yields:
        Nothing; what runs inside is watched.

    Raises:
        WorkerError: the one that was raised inside, with a sentence more.
    """
    before = [read_counters(client) for client in clients]
    try:
        yield
    except WorkerError as error:
        after = [read_counters(client) for client in clients]
        sentence = too_many_releases(releases_between(leaf_spine, workers, before, after))
        if not sentence:
            raise
        raise WorkerError(f"{error} {sentence}") from error


def too_many_releases(releases: Sequence[int]) -> str:
    """Name the workers that have had far more slots released than the others.

    Args:
        releases: of each worker.

    Returns:
        A sentence; empty where nobody has.
    """
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
