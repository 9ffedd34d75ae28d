# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Says that a switch serves: to systemd, and by a file."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.softswitch.errors import SoftSwitchError

_LOG = logging.getLogger("softswitch.readiness")
_VARIABLE = "NOTIFY_SOCKET"


def notify(state: str) -> None:
    """Tell systemd, if it has started this process and wants to know.

    One datagram: https://man7.org/linux/man-pages/man3/sd_notify.3.html

    Args:
        state: assignments such as ``READY=1``, one a line.
    """
    address = os.environ.get(_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    # A name that begins with @ is one without a file.
    name = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.sendto(state.encode(), name)
    except OSError as error:
        _LOG.warning("Nobody at %s (%s) hears: %s", _VARIABLE, address, error.strerror or error)


def forget_ready(path: Path) -> None:
    """Remove the file that an earlier switch has left, and see to it that one can be made.

    Raises:
        SoftSwitchError: it cannot be removed, or none be made.
    """
    try:
        path.unlink(missing_ok=True)
        part = _part_of(path)
        part.touch()
        part.unlink()
    except OSError as error:
        raise _cannot(path, error) from None


@contextmanager
def ready(address: str, path: Path | None) -> Iterator[None]:
    """Say that the switch serves, as long as the block runs.

    Args:
        address: where it does.
        path: a file that has the address meanwhile, or None.

    Raises:
        SoftSwitchError: the file cannot be written.
    """
    if path is not None:
        part = _part_of(path)
        try:
            part.write_text(f"{address}\n")
            # Who sees it sees all of it.
            part.replace(path)
        except OSError as error:
            raise _cannot(path, error) from None
    notify(f"READY=1\nSTATUS=Serves P4Runtime on {address}")
    try:
        yield
    finally:
        notify("STOPPING=1")
        if path is not None:
            path.unlink(missing_ok=True)


def _part_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _cannot(path: Path, error: OSError) -> SoftSwitchError:
    return SoftSwitchError(
        f"The file {path} cannot be written: {error.strerror or error}; choose another place "
        "(--ready-file)."
    )
