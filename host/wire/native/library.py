# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The native code for frames, compiled once with the system's compiler.

Without a compiler, or when ``SWITCHGNN_HOSTS`` is ``python``, Python does the same.
"""

import os
from ctypes import CDLL, POINTER, Structure, c_int, c_int64, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path

from switchgnn.base.native import CompilerError, LibrarySource, compiled_library
from switchgnn.host.errors import HostError
from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.header import (
    BODY_AT,
    CHECKED_BYTES,
    ETHERNET_BYTES,
    FRAGMENT_BYTES,
    HEADER_AT,
    PROTOCOL,
    VERSION,
    Kind,
)

VARIABLE = "SWITCHGNN_HOSTS"
NATIVE, PYTHON = "native", "python"
_SOURCES = Path(__file__).parent
_HEADERS = ("arriving.h", "checksums.h", "rows.h", "sums.h")
_INCLUDED = ("frames.h",)


class NativeFramesError(HostError):
    """The native code is asked for and cannot be had."""


class Arrived(Structure):
    """A batch, as struct Arrived of frames.h."""

    _fields_ = (
        ("room", c_void_p),
        ("room_bytes", c_uint64),
        ("begins", c_void_p),
        ("sizes", c_void_p),
    )

    @classmethod
    def of(cls, batch: FrameBatch) -> "Arrived":
        """Return where the frames of a batch are."""
        return cls(
            batch.room.ctypes.data,
            batch.room.nbytes,
            batch.begins.ctypes.data,
            batch.sizes.ctypes.data,
        )


class NativeFrames:
    """The functions of the library."""

    def __init__(self, path: Path) -> None:
        library = CDLL(str(path))
        self.write_checksums = library.write_checksums
        self.write_checksums.argtypes = (c_void_p, c_uint64, c_uint64, c_void_p)
        self.write_checksums.restype = None
        self.sift_sums = library.sift_sums
        self.sift_sums.argtypes = (c_void_p, c_void_p, c_uint32, c_uint32)
        self.sift_sums.restype = None
        self.sift_rows = library.sift_rows
        self.sift_rows.argtypes = (
            POINTER(c_void_p),
            c_uint32,
            c_void_p,
            c_uint32,
            c_uint32,
            c_void_p,
        )
        self.sift_rows.restype = c_uint32
        self.receive_frames = library.receive_frames
        self.receive_frames.argtypes = (c_void_p, c_int, c_int64)
        self.receive_frames.restype = c_int


@cache
def native_frames() -> NativeFrames | None:
    """Return the native code, compiled if need be; None where Python does the work.

    Raises:
        NativeFramesError: ``SWITCHGNN_HOSTS`` is ``native``, and there is no compiler, or it fails.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted == PYTHON:
        return None
    try:
        return NativeFrames(compiled_library(_source()))
    except CompilerError as error:
        if wanted == NATIVE:
            raise NativeFramesError(f"{error}, or set {VARIABLE}={PYTHON}.") from error
        return None


def compile_for_hosts() -> None:
    """Compile now what hosts will need, so that nothing that has a deadline waits for it.

    Raises:
        NativeFramesError: as ``native_frames``.
    """
    native_frames()


def hosts_run_as() -> str:
    """Return what hosts take frames apart with here: ``native`` or ``python``."""
    return PYTHON if native_frames() is None else NATIVE


def _source() -> LibrarySource:
    """Return the C++ of the library: the numbers of the header, and the files that use them."""
    numbers = {
        "HEADER_AT": HEADER_AT,
        "CHECKED_BYTES": CHECKED_BYTES,
        "CHECKSUM_AT": HEADER_AT + CHECKED_BYTES,
        "BODY_AT": BODY_AT,
        "ETHERNET_BYTES": ETHERNET_BYTES,
        "IPV4_LENGTH_AT": ETHERNET_BYTES + 2,
        "FRAGMENT_BYTES": FRAGMENT_BYTES,
        "VERSION": VERSION,
        "PROTOCOL": PROTOCOL,
        **{f"KIND_{kind.name}": int(kind) for kind in Kind},
    }
    defined = "".join(f"#define {name} {number}\n" for name, number in numbers.items())
    return LibrarySource(
        part="hosts",
        name="frames",
        who="The native code of hosts",
        unit=defined + "".join(f'#include "{name}"\n' for name in _HEADERS),
        folder=_SOURCES,
        files=(*_HEADERS, *_INCLUDED),
    )
