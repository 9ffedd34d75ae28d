# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Child processes that never outlive their parent."""

import logging
import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Protocol

from switchgnn.base.full_disk import keep_room, writing
from switchgnn.base.machine import module_of
from switchgnn.topologies.errors import FabricError

# From util-linux. A `preexec_fn` could do the same, but would fork under gRPC's threads.
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
# BMv2 makes its socket with the permissions that this leaves.
_OWNER_ONLY = 0o077
_POLL_INTERVAL = 0.02
_STOP_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_LOG = logging.getLogger(__name__)
# Last lines of a process's log that are logged again.
_MOST_LINES = 100


def temporary_files_in(folder: Path) -> dict[str, str]:
    """Return the variables that move a process's temporary files to a folder.

    A killed process leaves them, and they are removed with the run's folder.
    """
    return {"TMPDIR": str(folder.absolute())}


def how_it_ended(code: int | None) -> str:
    """Return how a process ended, as a predicate."""
    if code is None or code >= 0:
        return f"stopped with code {code}"
    memory = ", probably for lack of memory" if -code == signal.SIGKILL else ""
    return f"was killed by signal {-code}{memory}"


class Process(Protocol):
    """The used part of ``subprocess.Popen``; also implemented for forked processes."""

    pid: int

    @property
    def stdin(self) -> IO[str] | None:
        """Our end of its standard input."""

    @property
    def stdout(self) -> IO[str] | None:
        """Our end of its standard output."""

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code, or raise ``subprocess.TimeoutExpired``."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""


class Child:
    """A process with a log file; start, wait until ready, stop. A context manager."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        pipe: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._pipe = pipe
        self._environment = dict(environment or {})
        self._process: Process | None = None

    def start(self) -> None:
        """Start the process unless it runs."""
        if self._process is not None:
            return
        with self._open_log() as log:
            try:
                # A session of its own: Ctrl-C reaches the parent, which stops its children.
                self._process = subprocess.Popen(
                    [*DIE_WITH_PARENT, *self._command],
                    stdin=subprocess.PIPE if self._pipe else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if self._pipe else log,
                    stderr=log,
                    text=True,
                    env={**os.environ, **self._environment},
                    start_new_session=True,
                    umask=_OWNER_ONLY,
                )
            except FileNotFoundError as error:
                raise FabricError(f"Cannot start {self.name}: no {error.filename}.") from error
        self._tell_start()

    def _tell_start(self) -> None:
        words = shlex.join(module_of(self._command) or self._command)
        _LOG.info("%s: process %d, %s; its log: %s", self.name, self.pid, words, self.log)

    def _tell_end(self, code: int | None) -> None:
        _LOG.info("%s: ended with code %s", self.name, code)
        if _LOG.isEnabledFor(logging.INFO):
            for line in self.said()[-_MOST_LINES:]:
                _LOG.info("%s said: %s", self.name, line)

    def said(self) -> list[str]:
        """Return the non-empty lines of its log."""
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return []
        return [line for line in text.splitlines() if line.strip()]

    def _open_log(self) -> IO[str]:
        """Open the log, with some room reserved in case the disk fills up."""
        with ExitStack() as stack, writing(self.log):
            log = stack.enter_context(self.log.open("w"))
            keep_room(log.fileno())
            stack.pop_all()
        return log

    @property
    def stdin(self) -> IO[str]:
        """The parent's end of its standard input."""
        assert self._process is not None and self._process.stdin is not None  # noqa: S101
        return self._process.stdin

    @property
    def stdout(self) -> IO[str]:
        """The parent's end of its standard output."""
        assert self._process is not None and self._process.stdout is not None  # noqa: S101
        return self._process.stdout

    @property
    def pid(self) -> int | None:
        """Its process id while it has one."""
        return self._process.pid if self._process else None

    def exit_code(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self._process.poll() if self._process else None

    def wait(self, seconds: float) -> int | None:
        """Return its exit code, or None if it still runs after the seconds."""
        if self._process is None:
            return None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Poll until ``ready()``, for at most that many seconds."""
        deadline = time.monotonic() + seconds
        while not ready():
            code = self.exit_code()
            if code is not None:
                raise FabricError(f"{self.name} {how_it_ended(code)}: {self.last_words()}")
            if time.monotonic() > deadline:
                raise FabricError(
                    f"{self.name} was not ready after {seconds:g} s: {self.last_words()}"
                )
            self.wait(_POLL_INTERVAL)

    def read_line(self) -> str:
        """Return the next line of its output; it must not print another one without a question."""
        if not select.select([self.stdout], [], [], _ANSWER_SECONDS)[0]:
            raise FabricError(
                f"{self.name} has not answered for {_ANSWER_SECONDS:g} s: {self.last_words()}"
            )
        line = self.stdout.readline()
        if not line:
            raise FabricError(f"{self.name} ended: {self.last_words()}")
        return line

    def last_words(self) -> str:
        """Return the last line of its log."""
        lines = self.said()
        return lines[-1] if lines else "it left no message."

    def stop(self) -> None:
        """Terminate it, kill it if that does not help; idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._tell_end(process.poll())
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> "Child":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
