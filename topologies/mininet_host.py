# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A host in Mininet. Importing this module needs the extra `mininet`."""

import os
import select
import signal
import subprocess
import time
from contextlib import suppress

from mininet.node import Node

from switchgnn.topologies.errors import FabricError

_ANSWER_SECONDS = 60.0
_END_SECONDS = 5.0
_LOOK_MILLISECONDS = 100.0


class MininetHost(Node):  # type: ignore[misc]
    """A shell in a network namespace of its own.

    Mininet would wait forever for a shell that has ended, as it keeps the other end of the shell's
    terminal open itself.
    """

    shell: subprocess.Popen[bytes] | None

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 - Mininet's name
        """Start the shell and wait for its prompt."""
        try:
            super().startShell(mnopts)
        except BaseException:
            # A table of Mininet's keeps the object, and so the namespace, until this process ends.
            self.end()
            raise

    def read(self, size: int = 1024) -> str:
        """Return the shell's output; Mininet waits only here."""
        printed = select.poll()
        printed.register(self.stdout, select.POLLIN)
        deadline = time.monotonic() + _ANSWER_SECONDS
        while not printed.poll(_LOOK_MILLISECONDS):
            self.check()
            if time.monotonic() > deadline:
                raise FabricError(
                    f"The shell of Mininet's host {self.name} has not answered for "
                    f"{_ANSWER_SECONDS:g} s: run again."
                )
        text: str = super().read(size)
        return text

    def check(self) -> None:
        """Check that the shell still runs."""
        ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
        if self.shell is None or os.waitid(os.P_PID, self.shell.pid, ended) is not None:
            raise FabricError(f"The shell of Mininet's host {self.name} has ended: run again.")

    def end(self) -> None:
        """Kill the shell and its processes; its namespace ends with them. Idempotent."""
        shell, self.shell = self.shell, None
        if shell is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        # One that has just been started has no process group of its own yet.
        shell.kill()
        with suppress(subprocess.TimeoutExpired):
            shell.wait(_END_SECONDS)
        os.close(self.slave)
        if self.stdin is None:
            os.close(self.master)
        else:
            self.stdin.close()
