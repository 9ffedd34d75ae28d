# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What ``subprocess.Popen`` is to a program, for processes that were forked."""

import os
import select
import signal
import subprocess
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import IO


class _ForkedProcess(ABC):
    """What ``Process`` asks for, by way of a look at the exit code."""

    stdin: IO[str] | None = None
    stdout: IO[str] | None = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    @abstractmethod
    def _look(self, seconds: float | None) -> int | None:
        """Return the exit code, or None if it still runs after the seconds (None: no limit)."""

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self._code is None:
            self._code = self._look(0.0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        if self._code is None:
            self._code = self._look(timeout)
        if self._code is None:
            raise subprocess.TimeoutExpired("forked process", timeout or 0.0)
        return self._code

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            # It may just have ended; then its exit code is on the way.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Forked(_ForkedProcess):
    """A process that a nursery forked.

    Args:
        pid: its process id.
        status: where the nursery writes its exit code.
        stdin, stdout: our ends of its standard input and output, if they are piped.
    """

    def __init__(
        self,
        pid: int,
        status: IO[str],
        stdin: IO[str] | None = None,
        stdout: IO[str] | None = None,
    ) -> None:
        super().__init__(pid)
        self.stdin, self.stdout = stdin, stdout
        self._status = status

    def _look(self, seconds: float | None) -> int | None:
        ready, _, _ = select.select([self._status], [], [], seconds)
        if not ready:
            return None
        text = self._status.read()
        self._status.close()
        # Without a word the nursery itself was killed, and its children with it.
        return int(text) if text else -signal.SIGKILL


class Descendant(_ForkedProcess):
    """A process that this one forked."""

    def _look(self, seconds: float | None) -> int | None:
        watch = os.pidfd_open(self.pid)
        try:
            ready, _, _ = select.select([watch], [], [], seconds)
        finally:
            os.close(watch)
        if not ready:
            return None
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)
