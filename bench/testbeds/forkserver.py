"""A forkserver of processes that have threads, and so cannot fork themselves."""

import os
import socket
import sys
from collections.abc import Mapping, Sequence

from switchgnn.topologies.forkserver import DIE_WITH_PARENT, Forkserver

# Without the current folder, '' in sys.path. The orders are its standard input.
_PROGRAM = """
import importlib, os, socket, sys
sys.path[:] = filter(None, sys.path)
from switchgnn.topologies.forkserver import serve
for name in sys.argv[1:]:
    importlib.import_module(name)
serve(socket.socket(fileno=os.dup(0)))
"""


class NewForkserver(Forkserver):
    """Serves in a new process, which imports modules while the caller continues."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        super().__init__()
        self._modules = modules
        self._environment = dict(environment)

    def begin(self, orders: socket.socket) -> int:
        """Start the process; return its id."""
        command = [*DIE_WITH_PARENT, sys.executable, "-c", _PROGRAM, *self._modules]
        return os.posix_spawnp(
            command[0],
            command,
            {**os.environ, **self._environment},
            file_actions=[(os.POSIX_SPAWN_DUP2, orders.fileno(), 0)],
            setsid=True,
        )
