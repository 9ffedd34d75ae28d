"""A network namespace of the benchmarks' own.

The kernel removes it, with its interfaces, after its last process has ended in any way.
"""

import ctypes
import os
import subprocess
from pathlib import Path

from bench.errors import BenchError

_CLONE_NEWNET = 0x40000000
_OWN = Path("/proc/thread-self/ns/net")
_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """Moves the calling thread, and all that it starts, into a new network namespace."""

    def __init__(self) -> None:
        self._before = -1

    def __enter__(self) -> "Namespace":
        self._before = os.open(_OWN, os.O_RDONLY)
        if _libc.unshare(_CLONE_NEWNET) != 0:
            raise BenchError(f"No network namespace: {os.strerror(ctypes.get_errno())}.")
        # Without IPv6 the kernel sends no packets of its own on wires that are counted.
        for which in ("all", "default"):
            path = Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6")
            if path.exists():
                path.write_text("1")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return self

    def __exit__(self, *_: object) -> None:
        _enter(self._before)
        os.close(self._before)


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise BenchError(f"Cannot change the namespace: {os.strerror(ctypes.get_errno())}.")
