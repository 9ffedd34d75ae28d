"""The native code for frames, compiled once with the system's compiler.

Without a compiler, or when ``SWITCHGNN_HOSTS`` is ``python``, Python does the same.
"""

import errno
import os
from collections.abc import Callable, Sequence
from ctypes import CDLL, POINTER, Structure, addressof, c_int, c_int64, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from switchgnn.base.array_types import UInt8s, UInt32s
from switchgnn.base.native import CompilerError, compiled_library
from switchgnn.host.base.errors import HostError
from switchgnn.host.wire import header
from switchgnn.host.wire.batches import FrameBatch, FrameRows

_CHECKSUM_AT = header.HEADER_AT + header.CHECKED_BYTES
VARIABLE = "SWITCHGNN_HOSTS"
NATIVE, PYTHON = "native", "python"
_SOURCES = Path(__file__).parent / "native"
_HEADERS = ("frames.h", "arriving.h", "reduced.h", "rows.h", "sums.h")
_CONSTANTS = (
    *("HEADER_AT", "CHECKED_BYTES", "BODY_AT", "ETHERNET_BYTES", "FRAGMENT_BYTES", "GROUP_BYTES"),
    *("VERSION", "PROTOCOL", "SUM_BUNDLES", "PLACES", "PLACE_BYTES", "NO_PLACE"),
)
# The fields of the structs that native code and Python share, as C declares them.
_SHARED = {
    # Room for each message, one after the other; where the frames are, and what has come.
    "ReceivingFields": """
        u8 *room; u64 message_bytes; u32 messages, most; u32 *begins, *sizes;
        u32 count; u64 bytes;
    """,
    # What the frames must carry, and how many rows; the awaited sums by ascending vertex: the index
    # of each, and the count that it must have; by index, their states and bodies; what has come.
    "SumFields": """
        u32 round, block, fragment, body_bytes, rows, sums;
        const u32 *vertices, *indices, *counts; u8 *awaited, *payloads;
        u32 taken, acknowledgements; u32 *groups, *accepted;
    """,
    # What the frames must carry; `RowArrays` of host/direct; the workers whose frames were taken.
    # `held`: groups of which a frame of this batch is left. What follows must not overtake it, as
    # an acknowledgement with a gap reports a loss.
    "RowFields": """
        u32 protocol, group, round, mark, receiver, workers; u64 row_bytes, payload_bytes;
        const u32 *first, *frames; const u64 *begin; u8 *seen, *payloads; u32 *left_of_row;
        u8 *whole; u32 taken; u8 *heard; u32 *held; u32 held_count;
    """,
    # The fragments that may be awaited, and the slots, less one; by slot, whether the sum is
    # awaited, the width and the code that this worker sent, and what the sum brought.
    "ReducedFields": """
        u32 session, workers; u64 begin, end; u32 mask; u8 *awaited;
        const u8 *widths, *sent_codes; u8 *codes, *bodies;
        u32 taken, marked, ignored, left; u64 *numbers; u32 *left_frames;
    """,
}


@cache
def shared_struct(name: str) -> type[Structure]:
    """Return a struct of native code."""
    fields: list[tuple[str, type]] = []
    for declaration in _SHARED[name].replace("const ", "").strip().rstrip(";").split(";"):
        kind, names = declaration.split(maxsplit=1)
        number = c_uint64 if kind == "u64" else c_uint32
        for each in names.split(", "):
            fields.append((each.lstrip("*"), c_void_p if each.startswith("*") else number))
    return type(name, (Structure,), {"_fields_": fields})


class Arrived(Structure):
    """The frames of a batch, as struct Arrived of frames.h."""

    _fields_ = (
        *(("room", c_void_p), ("room_bytes", c_uint64)),
        *(("begins", c_void_p), ("sizes", c_void_p)),
    )

    @classmethod
    def of(cls, batch: FrameBatch) -> "Arrived":
        """Return where the frames of a batch are."""
        begins, sizes = batch.begins.ctypes.data, batch.sizes.ctypes.data
        return cls(batch.room.ctypes.data, batch.room.nbytes, begins, sizes)


class NativeFrames:
    """The functions of the library."""

    def __init__(self, path: Path) -> None:
        library, some, many, at = CDLL(str(path)), c_uint32, c_uint64, c_void_p

        def function(name: str, result: type | None, *arguments: type) -> Callable[..., int]:
            found = library[name]
            found.restype, found.argtypes = result, arguments
            return found

        fast_path = (POINTER(at), some, at, some, some, at)
        self.write_checksums = function("write_checksums", None, at, many, many, at)
        self.take_sums = function("take_sums", some, *fast_path)
        self.take_rows = function("take_rows", some, *fast_path)
        self.take_reduced = function("take_reduced", None, at, at, some, some)
        self._send_frames = function("send_frames", c_int, c_int, at, many, at, some, some)
        self.receive_frames = function("receive_frames", c_int, at, c_int, c_int64)

    def send(self, descriptor: int, rows: FrameRows, first: int, count: int) -> int:
        """Send at least one of some frames, in one system call; return how many were sent."""
        sizes = None if rows.sizes is None else rows.sizes.ctypes.data
        sent = self._send_frames(
            descriptor, rows.frames.ctypes.data, rows.frame_bytes, sizes, first, count
        )
        if sent < 0:
            raise OSError(-sent, os.strerror(-sent))
        return int(sent)


@cache
def native_frames() -> NativeFrames | None:
    """Return the native code, compiled if necessary; None: Python is used instead."""
    wanted = os.environ.get(VARIABLE)
    if wanted == PYTHON:
        return None
    try:
        who = "The native code of hosts"
        return NativeFrames(
            compiled_library("hosts", "frames", who, unit=_unit(), folder=_SOURCES, files=_HEADERS)
        )
    except (CompilerError, OSError) as error:  # the file cannot be loaded
        if wanted == NATIVE:
            raise HostError(f"{error}, or set {VARIABLE}={PYTHON}.") from error
        return None


def hosts_run_as() -> str:
    """Return how hosts parse frames here: ``native`` or ``python``."""
    return PYTHON if native_frames() is None else NATIVE


def _unit() -> str:
    places = {name.upper(): span for name, span in header.spans().items()}
    numbers = {
        **{f"{name}_AT": header.HEADER_AT + span.at for name, span in places.items()},
        **{f"{name}_MASK": span.mask for name, span in places.items() if span.mask},
        **{f"KIND_{kind.name}": int(kind) for kind in header.Kind},
        **{name: getattr(header, name) for name in _CONSTANTS},
        "IPV4_LENGTH_AT": header.ETHERNET_BYTES + 2,
        "LAST_LANES": header.lanes_of(header.LAST_WIDTH),
    }
    defined = "".join(f"#define {name} {number}\n" for name, number in numbers.items())
    structs = "".join(f"struct {name} {{{fields}}};\n" for name, fields in _SHARED.items())
    first, *others = (f'#include "{name}"\n' for name in _HEADERS)
    return defined + first + structs + "".join(others)


def write_checksums(frames: UInt8s, sizes: UInt32s | None = None) -> None:
    """Write the checksums of frames, uint8[S, L], contiguous; `sizes`: uint32[S], else all L."""
    native = native_frames()
    count, room = frames.shape
    if native is not None:
        lengths = None if sizes is None else sizes.ctypes.data
        native.write_checksums(frames.ctypes.data, room, count, lengths)
        return
    ends = [room] * count if sizes is None else sizes.tolist()
    rows = zip(frames, ends, strict=True)
    found = (header.frame_checksum(row.data, end - header.BODY_AT) for row, end in rows)
    values = np.fromiter(found, dtype=">u4", count=count)
    frames[:, _CHECKSUM_AT : header.BODY_AT] = values.view(np.uint8).reshape(-1, 4)


# UDP_MAX_SEGMENTS of linux/udp.h.
_FRAMES_OF_A_MESSAGE = 128
_A_SECOND = 1e9
_LONGEST = 3600.0


class NativeArriving:
    """Receives frames from a socket into `batch`, many in one system call."""

    def __init__(
        self, frames: NativeFrames, descriptor: int, messages: int, longest: int, *, cut: bool
    ) -> None:
        most = messages * _FRAMES_OF_A_MESSAGE if cut else messages
        begins, sizes = np.zeros((2, most), dtype=np.uint32)
        self.batch = FrameBatch(np.zeros(messages * longest, dtype=np.uint8), begins, sizes)
        self._descriptor = descriptor
        self._receive = frames.receive_frames
        self._receiving = shared_struct("ReceivingFields")(
            room=self.batch.room.ctypes.data,
            message_bytes=longest,
            messages=messages,
            most=most,
            begins=begins.ctypes.data,
            sizes=sizes.ctypes.data,
        )
        self._address = addressof(self._receiving)

    def receive(self, seconds: float) -> int:
        """Receive frames as ``PlainArriving`` does."""
        nanoseconds = int(min(seconds, _LONGEST) * _A_SECOND)
        failed = self._receive(self._address, self._descriptor, nanoseconds)
        while failed == errno.EINTR:
            failed = self._receive(self._address, self._descriptor, nanoseconds)
        batch, count = self.batch, self._receiving.count
        batch.first, batch.count = 0, count
        if failed:
            raise OSError(failed, os.strerror(failed))
        return self._receiving.bytes if count else -1


class SumFastPath:
    """Takes the sums of a unit of a block out of batches.

    `vertices`: uint32[Q], the vertices of the awaited sums. `counts`: uint32[Q], the contributions
    that each sum must have; of bundles, with several `rows` in a frame, the plan says it all.
    """

    def __init__(self, vertices: UInt32s, counts: UInt32s, rows: int = 1) -> None:
        order = np.argsort(vertices, kind="stable")
        self._indices = order.astype(np.uint32)
        self._vertices = np.ascontiguousarray(vertices[order], dtype=np.uint32)
        self._counts = np.ascontiguousarray(counts[order], dtype=np.uint32)
        self._fast_path = shared_struct("SumFields")(
            sums=len(vertices),
            rows=rows,
            vertices=self._vertices.ctypes.data,
            indices=self._indices.ctypes.data,
            counts=self._counts.ctypes.data,
        )
        self._groups, self._accepted = np.zeros((2, 0), dtype=np.uint32)

    def open(self, session: int, unit: header.Unit, awaited: UInt8s, payloads: UInt8s) -> None:
        """Begin a unit. `awaited`: uint8[Q], 1 for sums to take. `payloads`: uint8[Q · 4 W]."""
        self._fast_path.round = header.session_and_round(session, unit.round)
        self._fast_path.block, self._fast_path.fragment = unit.block, unit.fragment
        self._fast_path.body_bytes = header.payload_bytes(unit.fragment)
        self._awaited, self._payloads = awaited, payloads
        self._fast_path.awaited = awaited.ctypes.data
        self._fast_path.payloads = payloads.ctypes.data

    @property
    def taken(self) -> int:
        """How many sums of the last batch were stored."""
        return int(self._fast_path.taken)

    @property
    def acknowledged(self) -> Sequence[tuple[int, int]]:
        """Of each sound acknowledgement without a mark: the group, and how many the switch has."""
        number = self._fast_path.acknowledgements
        if not number:
            return ()
        groups, accepted = self._groups[:number].tolist(), self._accepted[:number].tolist()
        return list(zip(groups, accepted, strict=True))

    def address(self, frames: int) -> int:
        """See ``FastPath``."""
        if len(self._groups) < frames:
            self._groups, self._accepted = np.zeros((2, frames), dtype=np.uint32)
            self._fast_path.groups = self._groups.ctypes.data
            self._fast_path.accepted = self._accepted.ctypes.data
        return addressof(self._fast_path)


class FastPath(Protocol):
    """Takes the frames of a batch that are of one kind and need no answer."""

    def address(self, frames: int) -> int:
        """Return the address of the native struct, with room for a batch of that many frames."""


class FastPaths:
    """Takes frames that need no answer out of batches; `take`: of the library."""

    def __init__(self, take: Callable[..., int]) -> None:
        self._take = take
        self._batch: FrameBatch | None = None

    def take_plain(self, batch: FrameBatch, fast_paths: Sequence[FastPath]) -> Sequence[int]:
        """Let each of them take its frames; return the others."""
        if batch is not self._batch:
            self._batch = batch
            self._where = Arrived.of(batch)
            self._arrived = addressof(self._where)
            self._left = np.zeros(len(batch.sizes), dtype=np.uint32)
            self._left_address = self._left.ctypes.data
        found = [fast_path.address(len(batch.sizes)) for fast_path in fast_paths]
        addresses = (c_void_p * len(found))(*found)
        left = self._take(
            addresses, len(found), self._arrived, batch.first, batch.count, self._left_address
        )
        return self._left[:left].tolist() if left else ()
