# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Where the switches of a site serve P4Runtime: a Unix socket each, unless TCP is asked for.

Any user of the machine can connect to a TCP port on loopback. A socket in a folder of the run's
own is for the user who started it.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.base.files import private_folder
from switchgnn.base.full_disk import writing
from switchgnn.controller.p4runtime.connection import MOST_BYTES, SCHEME, fits_socket, socket_path
from switchgnn.topologies.errors import FabricError

_LONGEST_NAME = "spine-999.sock"
_SHORT_FOLDER = "/tmp"  # noqa: S108  a private folder is created in it
_ANSWER_SECONDS = 0.2


def socket_address(folder: Path, name: str = "switch") -> str:
    """Return the address ``unix:PATH`` of a switch's socket in the private folder of a run.

    Raises:
        FabricError: the path is too long for a socket.
    """
    path = folder.absolute() / f"{name}.sock"
    if not fits_socket(path):
        raise FabricError(
            f"The path of a socket has at most {MOST_BYTES} bytes, and {path} is longer: choose a "
            "shorter folder for temporary files (TMPDIR)."
        )
    return f"{SCHEME}{path}"


@contextmanager
def folder_for_sockets(folder: Path) -> Iterator[Path]:
    """Yield the folder of a run, or a new one if its path is too long for sockets."""
    if fits_socket(folder.absolute() / _LONGEST_NAME):
        yield folder
        return
    with private_folder("switchgnn-", _SHORT_FOLDER) as short:
        yield short


def split_tcp(address: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def require_free(address: str) -> None:
    """Check that nothing listens on the address yet."""
    if (path := socket_path(address)) is not None:
        if answers(address):
            raise FabricError(f"A switch serves at {path} already: end it first.")
        _require_room(path)
        return
    host, port = split_tcp(address)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            raise taken(address, error) from error


def _require_room(path: Path) -> None:
    """Create a socket for a moment, as gRPC would not report why it cannot create the switch's."""
    trial = path.with_suffix(".try")
    with writing(trial), socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.fspath(trial))
        trial.unlink()


def taken(address: str, error: OSError) -> FabricError:
    """Return the error for a TCP address that is in use."""
    host, port = split_tcp(address)
    return FabricError(
        f"Port {port} on {host} is taken: {error.strerror}. "
        "End the program that holds it, or choose another with --grpc-port."
    )


def answers(address: str) -> bool:
    """Return whether a server listens on the address."""
    path = socket_path(address)
    family, where = (
        (socket.AF_INET, split_tcp(address)) if path is None else (socket.AF_UNIX, os.fspath(path))
    )
    with socket.socket(family) as sock:
        sock.settimeout(_ANSWER_SECONDS)
        return sock.connect_ex(where) == 0
