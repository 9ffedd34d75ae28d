"""Frames from pcap and pcapng files, gzipped or not: one, or several merged by time.

Scapy's readers take a damaged file for one that ends, mix up the interfaces of several sections,
ignore their offsets of time, and read blocks of any length into memory.
Formats: draft-ietf-opsawg-pcap-05, draft-ietf-opsawg-pcapng-03.
"""

import gzip
import heapq
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from switchgnn.base.files import open_regular
from switchgnn.capture.packet import (
    LINK_TYPES,
    LONGEST_FRAME,
    Captured,
    CaptureError,
    DamageError,
    as_ethernet,
)

_PIECE = 1 << 16
STANDARD_INPUT = "-"
_ENDINGS = (".pcap", ".pcapng")
_PACKED = ".gz"
_GZIP = b"\x1f\x8b"


class CaptureStream:
    """A stream of bytes that counts what was read, `at`, and reads no more than asked for."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self.name = name
        self.at = 0

    def take(self, count: int, what: str, *, or_end: bool = False) -> bytes:
        """Return the next `count` bytes; `or_end`: or none at the end.

        If there are fewer, DamageError names `what`.
        """
        try:
            found = self._stream.read(count)
        except (OSError, EOFError, zlib.error) as error:
            why = getattr(error, "strerror", None) or error
            raise self.damage(f"it cannot be read any further ({why})") from error
        self.at += len(found)
        if len(found) < count and (found or not or_end):
            raise self.damage(f"it ends in the middle of {what}")
        return found

    def skip(self, count: int, what: str) -> None:
        """Skip bytes, piece by piece; errors as `take`."""
        while count > 0:
            count -= len(self.take(min(count, _PIECE), what))

    def damage(self, why: str) -> DamageError:
        """Return an error with the position in the stream."""
        return DamageError(
            f"{self.name} is damaged at byte {self.at:,}: {why}. Frames before it were read."
        )


_BILLION = 1_000_000_000
_LINK_TYPE = 0xFFFF
# By the first bytes of a pcap file: the order of its bytes, and the nanoseconds of its time unit.
_PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
# Of pcapng: a section, which has the order of its bytes, an interface, and a packet; with the least
# bytes of the blocks that are read. Others are skipped, however long they are.
_SECTION = b"\x0a\x0d\x0d\x0a"
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_INTERFACE, _PACKET = 1, 6
_LEAST_BYTES = {int.from_bytes(_SECTION, "big"): 28, _INTERFACE: 20, _PACKET: 32}
_SMALLEST_BLOCK = 12
_LONGEST_BLOCK = LONGEST_FRAME + (1 << 16)
_NAME, _RESOLUTION, _OFFSET = 2, 9, 14
# 2^-30 s is about a nanosecond.
_FINEST = 30


def read_frames(source: CaptureStream, link: str) -> Iterator[Captured]:
    """Read the frames of a pcap or pcapng stream in their order; `link`: if it names no interface.

    Those of link types other than Ethernet and Linux cooked are empty. Iterating raises DamageError
    where the stream is damaged, and CaptureError if a pcap is of another link type; CaptureError:
    it is neither pcap nor pcapng.
    """
    try:
        magic = source.take(4, "its first number")
    except DamageError as error:
        raise CaptureError(f"{source.name} is no capture: it has {source.at} bytes.") from error
    if magic in _PCAP:
        return _read_pcap(source, *_PCAP[magic], link)
    if magic == _SECTION:
        return _read_pcapng(source, link)
    raise CaptureError(
        f"{source.name} is neither a pcap nor a pcapng file; "
        "`tcpdump -w` and Wireshark write such files."
    )


def _read_pcap(source: CaptureStream, order: str, unit: int, link: str) -> Iterator[Captured]:
    link_type = struct.unpack(f"{order}16xI", source.take(20, "its header"))[0] & _LINK_TYPE
    if link_type not in LINK_TYPES:
        raise CaptureError(
            f"{source.name} has packets of link type {link_type}, which is neither Ethernet nor "
            "Linux cooked: capture on an Ethernet interface, as with `tcpdump -i eth0`."
        )
    record = struct.Struct(f"{order}4I")
    while head := source.take(record.size, "a packet's header", or_end=True):
        seconds, part, kept, size = record.unpack(head)
        if kept > LONGEST_FRAME:
            raise source.damage(f"a packet of {kept:,} bytes, more than {LONGEST_FRAME:,}")
        frame = source.take(kept, "a packet")
        captured = Captured(seconds * _BILLION + part * unit, link, frame, max(size, kept))
        yield as_ethernet(captured, link_type)


class _Interface(NamedTuple):
    link: str
    link_type: int
    frequency: int
    offset: int  # seconds to add to its times


def _read_pcapng(source: CaptureStream, link: str) -> Iterator[Captured]:
    order = "<"
    interfaces: list[_Interface] = []
    head = _SECTION
    while head:
        head += source.take(4, "a block's header")
        if head[:4] == _SECTION:
            head += source.take(4, "a section's header")
            if head[8:] not in _ORDERS:
                raise source.damage("a section without a byte order")
            order, interfaces = _ORDERS[head[8:]], []
        kind, size = struct.unpack(f"{order}II", head[:8])
        if size < _LEAST_BYTES.get(kind, _SMALLEST_BLOCK):
            raise source.damage(f"a block of {size} bytes, shorter than its header")
        if kind in _LEAST_BYTES:
            content = _take_content(source, order, size, size - len(head))
            if kind == _INTERFACE:
                interfaces.append(_interface(content, order, link))
            elif kind == _PACKET:
                yield _captured(source, content, order, interfaces)
        else:
            source.skip(size - len(head), "a block")
        head = source.take(4, "a block's header", or_end=True)


def _take_content(source: CaptureStream, order: str, size: int, left: int) -> bytes:
    if size > _LONGEST_BLOCK:
        raise source.damage(f"a block of {size:,} bytes, more than {_LONGEST_BLOCK:,}")
    content = source.take(left, "a block")
    if struct.unpack(f"{order}I", content[-4:])[0] != size:
        raise source.damage("a block whose length fields do not match")
    return content[:-4]


def _interface(content: bytes, order: str, link: str) -> _Interface:
    options: dict[int, bytes] = {}
    at = 8
    while at + 4 <= len(content):
        code, size = struct.unpack_from(f"{order}HH", content, at)
        options[code] = content[at + 4 : at + 4 + size]
        at += 4 + size + -size % 4
    name = options.get(_NAME, b"")[:64].decode(errors="replace")
    # A power of 10, or of 2 if the highest bit is set.
    resolution = (options.get(_RESOLUTION) or b"\x06")[0]
    frequency = (2 if resolution & 0x80 else 10) ** min(resolution & 0x7F, _FINEST)
    link_type = struct.unpack_from(f"{order}H", content)[0]
    offset = options.get(_OFFSET, b"")
    seconds = struct.unpack(f"{order}q", offset)[0] if len(offset) == 8 else 0
    return _Interface(name or link, link_type, frequency, seconds)


def _captured(
    source: CaptureStream, content: bytes, order: str, interfaces: Sequence[_Interface]
) -> Captured:
    head = struct.Struct(f"{order}5I")
    number, high, low, kept, size = head.unpack_from(content)
    if number >= len(interfaces) or kept > len(content) - head.size:
        raise source.damage("a packet of an interface, or of a length, that is not there")
    interface = interfaces[number]
    time = (high << 32 | low) * _BILLION // interface.frequency + interface.offset * _BILLION
    frame = content[head.size : head.size + kept]
    captured = Captured(time, interface.link, frame, max(size, kept))
    return as_ethernet(captured, interface.link_type)


class CaptureFiles:
    """Capture files, merged by time and read once. A context manager.

    A damaged file is read up to the damage, and the others to their ends; `damages` has one per
    file. A folder stands for its ``.pcap`` and ``.pcapng`` files, gzipped or not, ``-`` for the
    standard input. CaptureError: a file cannot be opened, or is no capture.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.damages: list[DamageError] = []
        with ExitStack() as stack:
            frames = [_begin(name, stack) for name in _expand(names)]
            self._frames = [self._until_damage(each) for each in frames]
            self._open = stack.pop_all()

    def __enter__(self) -> "CaptureFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __iter__(self) -> Iterator[Captured]:
        if len(self._frames) == 1:
            return self._frames[0]
        return heapq.merge(*self._frames, key=lambda captured: captured.time)

    def _until_damage(self, frames: Iterator[Captured]) -> Iterator[Captured]:
        try:
            yield from frames
        except DamageError as error:
            self.damages.append(error)


def _expand(names: Sequence[str]) -> list[str]:
    files: list[str] = []
    for name in names:
        if name == STANDARD_INPUT or not Path(name).is_dir():
            files.append(name)
            continue
        try:
            found = sorted(
                each for each in Path(name).iterdir() if _unpacked(each).suffix in _ENDINGS
            )
        except OSError as error:
            raise CaptureError(f"Cannot read {name}: {error.strerror}.") from error
        if not found:
            raise CaptureError(f"There is no {' and no '.join(_ENDINGS)} file in {name}.")
        files.extend(map(str, found))
    if files.count(STANDARD_INPUT) > 1:
        raise CaptureError("The standard input (-) can be read once.")
    return files


def _begin(name: str, stack: ExitStack) -> Iterator[Captured]:
    path = Path(name)
    try:
        if name == STANDARD_INPUT:
            stream: BinaryIO = sys.stdin.buffer
        else:
            # Opening a pipe waits for what writes to it.
            stream = stack.enter_context(path.open("rb") if path.is_fifo() else open_regular(path))
        if cast(BufferedReader, stream).peek(len(_GZIP)).startswith(_GZIP):
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    except OSError as error:
        raise CaptureError(f"Cannot read {name}: {error.strerror}.") from error
    if name == STANDARD_INPUT:
        return read_frames(CaptureStream(stream, "The standard input"), STANDARD_INPUT)
    return read_frames(CaptureStream(stream, name), _unpacked(path).stem)


def _unpacked(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == _PACKED else path
