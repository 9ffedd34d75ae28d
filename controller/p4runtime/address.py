# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Where a switch serves P4Runtime: ``HOST:PORT``, or ``unix:PATH`` for the socket's owner alone."""

import errno
import os
import socket
from pathlib import Path
from urllib.parse import quote

from switchgnn.base.files import user_name
from switchgnn.controller.errors import ControllerError

SCHEME = "unix:"
MOST_BYTES = 107  # of a socket's path: https://man7.org/linux/man-pages/man7/unix.7.html


def socket_path(address: str) -> Path | None:
    """Return the path of a Unix address, or None for any other address."""
    return Path(address.removeprefix(SCHEME)) if address.startswith(SCHEME) else None


def grpc_target(address: str) -> str:
    """Return what gRPC takes for the address: a URI, in which a path is quoted.

    Raises:
        ControllerError: no socket can have this path.
    """
    path = socket_path(address)
    if path is None:
        return address
    if not fits_socket(path):
        raise ControllerError(
            f"No switch can be at {address}: the path of a socket has at most {MOST_BYTES} bytes."
        )
    return f"{SCHEME}{quote(os.fspath(path))}"


def fits_socket(path: Path) -> bool:
    """Tell whether a socket may have this path."""
    return len(os.fsencode(path)) <= MOST_BYTES


def check_owner(address: str) -> None:
    """Check that a socket is that of this user, or of root.

    In a folder where others may make sockets, one of them could stand there in a switch's place.

    Raises:
        ControllerError: it is somebody else's.
    """
    path = socket_path(address)
    if path is None:
        return
    try:
        owner = path.stat().st_uid
    except OSError:
        return  # That there is none is found when it is connected to.
    if owner not in (os.geteuid(), 0):
        raise ControllerError(
            f"The socket {path} is not connected to: it belongs to user {user_name(owner)}. Be "
            "that user, or give the address of your own switch."
        )


def advice(address: str) -> str:
    """Return what to do about a switch that does not answer."""
    path = socket_path(address)
    usual = "start it, or give the address of its P4Runtime server (HOST:PORT or unix:PATH)"
    if path is None:
        return usual
    with socket.socket(socket.AF_UNIX) as sock:
        failed = sock.connect_ex(os.fspath(path))
    if failed in (errno.EACCES, errno.EPERM):
        return "its socket is for the user who started it; be that user"
    return usual if failed != errno.ENOENT else f"there is no socket {path}; {usual}"
