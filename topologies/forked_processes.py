# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What ``subprocess.Popen`` is to a program, for processes that were forked."""

import os
import select
import signal
import subprocess
from contextlib import suppress
from typing import IO


class Forked:
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
        self.pid = pid
        self.stdin, self.stdout = stdin, stdout
        self._status = status
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self._read(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        code = self._read(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("forked child", timeout or 0.0)
        return code

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

    def _read(self, timeout: float | None) -> int | None:
        if self._code is not None:
            return self._code
        ready, _, _ = select.select([self._status], [], [], timeout)
        if not ready:
            return None
        text = self._status.read()
        self._status.close()
        # Without a word the nursery itself was killed, and its children with it.
        self._code = int(text) if text else -signal.SIGKILL
        return self._code


class Descendant:
    """A process that this one forked; what ``Process`` asks for."""

    stdin: IO[str] | None = None
    stdout: IO[str] | None = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self._look(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        if self.poll() is None and timeout is not None:
            watch = os.pidfd_open(self.pid)
            ready, _, _ = select.select([watch], [], [], timeout)
            os.close(watch)
            if not ready:
                raise subprocess.TimeoutExpired("forked process", timeout)
        code = self._look(0)
        assert code is not None  # noqa: S101
        return code

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        # Until it is waited for, the number is nobody else's.
        if self._code is None:
            os.kill(self.pid, number)

    def _look(self, options: int) -> int | None:
        if self._code is None:
            ended, status = os.waitpid(self.pid, options)
            if ended:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code
