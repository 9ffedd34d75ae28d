# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses of the form ``unix:PATH``: a socket that only its owner may connect to."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.softswitch.errors import GrpcAddressError

_SCHEME = "unix:"
# What a process makes under this mask has mode 0600.
_OWNER_ONLY = 0o177
_MOST_BYTES = 107  # of a path: https://man7.org/linux/man-pages/man7/unix.7.html


def socket_path(address: str) -> Path | None:
    """Return the path of a Unix address, or None for any other address.

    Raises:
        GrpcAddressError: the path is missing, or too long for a socket.
    """
    if not address.startswith(_SCHEME):
        return None
    path = address.removeprefix(_SCHEME)
    if not path or len(os.fsencode(path)) > _MOST_BYTES:
        raise GrpcAddressError(
            f"The gRPC address {address} cannot be used: the path of a socket has 1 to "
            f"{_MOST_BYTES} bytes; choose a shorter one."
        )
    return Path(path)


def check_unused(path: Path) -> None:
    """Check that nobody listens there: gRPC would take the path away.

    Raises:
        GrpcAddressError: somebody does.
    """
    with socket.socket(socket.AF_UNIX) as sock:
        if sock.connect_ex(os.fspath(path)) == 0:
            raise GrpcAddressError(
                f"The gRPC address {_SCHEME}{path} cannot be used: stop what uses it or choose "
                "another."
            )


def check_room(path: Path) -> None:
    """Make a socket beside the path for a moment: gRPC would not say why it cannot make one.

    Raises:
        GrpcAddressError: none can be made there.
    """
    trial = path.with_suffix(f".{os.getpid()}")
    if len(os.fsencode(trial)) > _MOST_BYTES:
        return
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(os.fspath(trial))
            trial.unlink()
    except OSError as error:
        raise GrpcAddressError(
            f"The gRPC address {_SCHEME}{path} cannot be used: {error.strerror}; make room there "
            "or choose another."
        ) from None


@contextmanager
def owner_only() -> Iterator[None]:
    """Let what is made inside be open to its owner alone, from its first moment."""
    before = os.umask(_OWNER_ONLY)
    try:
        yield
    finally:
        os.umask(before)
