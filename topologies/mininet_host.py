# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A host in Mininet. Importing this module needs the extra `mininet`."""

import os
import signal
import subprocess
from contextlib import suppress

from mininet.node import Node

_END_SECONDS = 5.0


class MininetHost(Node):  # type: ignore[misc]
    """A shell in a network namespace of its own."""

    shell: subprocess.Popen[bytes] | None

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
