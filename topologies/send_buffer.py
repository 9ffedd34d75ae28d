# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Small send buffers for a switch that cannot choose its own.

BMv2 writes frames to packet sockets. On a shaped link the kernel keeps what the link
has not taken yet in the socket's send buffer: by default more than a hundred frames of
TCP, so that the queue would grow where the switch cannot see it, and BMv2's own queue,
whose length it marks packets by, would stay empty.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DEFAULT = Path("/proc/sys/net/core/wmem_default")
# About seven full Ethernet frames with the kernel's bookkeeping.
_SMALL_BYTES = 16384


@contextmanager
def small_send_buffers() -> Iterator[None]:
    """Let sockets that are opened inside have small send buffers.

    The kernel has one default for the whole machine and no way to set it for another
    program: it is lowered for the moment in which the switch opens its ports. Several runs
    take turns, or the second would take the first one's small default for the machine's.
    """
    with settled_default() as before:
        _DEFAULT.write_text(str(_SMALL_BYTES))
        try:
            yield
        finally:
            _DEFAULT.write_text(before)


@contextmanager
def settled_default() -> Iterator[str]:
    """Keep other runs from changing the default.

    Yields:
        What the file says.
    """
    with _DEFAULT.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.read()
