# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames from files: one, or several in the order of their times."""

import heapq
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

from switchgnn.base.files import open_regular
from switchgnn.capture.errors import CaptureError, DamageError
from switchgnn.capture.packet import ETHERNET, LONGEST_FRAME, Captured
from switchgnn.capture.source import Source

_BILLION = 1_000_000_000
_LINK_TYPE = 0xFFFF


class _Form(NamedTuple):
    """How the numbers of a file are written, and the nanoseconds of a part of a second."""

    order: str
    unit: int


_FORMS = {
    b"\xd4\xc3\xb2\xa1": _Form("<", 1000),
    b"\xa1\xb2\xc3\xd4": _Form(">", 1000),
    b"\x4d\x3c\xb2\xa1": _Form("<", 1),
    b"\xa1\xb2\x3c\x4d": _Form(">", 1),
}


def is_pcap(magic: bytes) -> bool:
    """Tell whether a file that begins with these four bytes is one."""
    return magic in _FORMS


def read_pcap(source: Source, magic: bytes, link: str) -> Iterator[Captured]:
    """Read the frames of a file one after another.

    Args:
        source: the file, behind its first four bytes.
        magic: these.
        link: where the frames were seen.

    Yields:
        The frames.

    Raises:
        CaptureError: the frames are not Ethernet's.
        DamageError: the file goes wrong.
    """
    form = _FORMS[magic]
    (link_type,) = struct.unpack(f"{form.order}16xI", source.take(20, "its header"))
    refuse_other_links(source.name, link_type & _LINK_TYPE)
    record = struct.Struct(f"{form.order}IIII")
    while True:
        head = source.take_or_end(record.size, "a packet's header")
        if head is None:
            return
        seconds, part, captured, size = record.unpack(head)
        if captured > LONGEST_FRAME:
            raise source.damage(f"a packet of {captured:,} bytes, more than {LONGEST_FRAME:,}")
        frame = source.take(captured, "a packet")
        yield Captured(seconds * _BILLION + part * form.unit, link, frame, max(size, captured))


def refuse_other_links(name: str, link_type: int) -> None:
    """Refuse frames that do not begin with an Ethernet header.

    Args:
        name: of the file.
        link_type: its link type.

    Raises:
        CaptureError: it is another one.
    """
    if link_type != ETHERNET:
        raise CaptureError(
            f"{name} has packets of link type {link_type}, and not Ethernet's: capture on one "
            "interface, as with `tcpdump -i eth0`, and not on `any`."
        )


PCAPNG = b"\x0a\x0d\x0d\x0a"
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_END_OF_OPTIONS, _NAME, _RESOLUTION = 0, 2, 9
# Blocks that are looked into, with options; others are passed over, however long they are.
_LONGEST_BLOCK = LONGEST_FRAME + (1 << 16)
_MOST_INTERFACES = 4096
# A tenth of a nanosecond is not told from none; 2^-30 s is about one.
_FINEST = 30


class _Interface(NamedTuple):
    """An interface of a section; ``unit`` is how many of its ticks are a second."""

    link: str
    ethernet: bool
    snap: int
    unit: int


class _Reader:
    """The blocks of one file."""

    def __init__(self, source: Source, link: str) -> None:
        self._source, self._link = source, link
        self._order = "<"
        self._interfaces: list[_Interface] = []

    def frames(self) -> Iterator[Captured]:
        """Read on behind the first four bytes."""
        kind = _SECTION
        while True:
            if kind == _SECTION:
                self._section()
            else:
                captured = self._block(kind)
                if captured is not None:
                    yield captured
            head = self._source.take_or_end(4, "a block's header")
            if head is None:
                return
            (kind,) = struct.unpack(f"{self._order}I", head)

    def _section(self) -> None:
        """Read the block that begins a section, which says the order of bytes."""
        length, magic = struct.unpack("4s4s", self._source.take(8, "a section's header"))
        order = _ORDERS.get(magic)
        if order is None:
            raise self._source.damage("a section that says no order of bytes")
        self._order = order
        self._interfaces = []
        self._pass(self._length(length) - 16, length)

    def _block(self, kind: int) -> Captured | None:
        length = self._source.take(4, "a block's header")
        size = self._length(length) - 12
        if kind not in (_INTERFACE, _SIMPLE, _ENHANCED):
            self._pass(size, length)
            return None
        if size > _LONGEST_BLOCK:
            raise self._source.damage(f"a block of {size:,} bytes, more than {_LONGEST_BLOCK:,}")
        body = self._source.take(size, "a block")
        self._pass(0, length)
        if kind == _INTERFACE:
            self._add_interface(body)
            return None
        return self._simple(body) if kind == _SIMPLE else self._enhanced(body)

    def _length(self, length: bytes) -> int:
        (size,) = struct.unpack(f"{self._order}I", length)
        if size < 12 or size % 4:
            raise self._source.damage(f"a block of {size} bytes")
        return int(size)

    def _pass(self, size: int, length: bytes) -> None:
        """Pass over what is left of a block, whose length stands once more at its end."""
        if size < 0:
            raise self._source.damage("a block that is shorter than its header")
        self._source.skip(size, "a block")
        if self._source.take(4, "a block") != length:
            raise self._source.damage("a block whose end says another length")

    def _add_interface(self, body: bytes) -> None:
        if len(body) < 8 or len(self._interfaces) >= _MOST_INTERFACES:
            raise self._source.damage("an interface that cannot be one")
        link_type, snap = struct.unpack_from(f"{self._order}HxxI", body)
        name, unit = self._link, 1_000_000
        for code, value in self._options(body[8:]):
            if code == _NAME and value:
                name = value[:64].decode(errors="replace")
            elif code == _RESOLUTION and value:
                unit = _ticks(value[0])
        self._interfaces.append(_Interface(name, link_type == ETHERNET, snap, unit))

    def _options(self, options: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at + 4 <= len(options):
            code, size = struct.unpack_from(f"{self._order}HH", options, at)
            if code == _END_OF_OPTIONS:
                return
            yield code, options[at + 4 : at + 4 + size]
            at += 4 + size + -size % 4

    def _enhanced(self, body: bytes) -> Captured | None:
        if len(body) < 20:
            raise self._source.damage("a packet that is shorter than its header")
        number, high, low, captured, size = struct.unpack_from(f"{self._order}5I", body)
        if number >= len(self._interfaces) or captured > len(body) - 20:
            raise self._source.damage("a packet of an interface, or of a length, that is not there")
        interface = self._interfaces[number]
        time = (high << 32 | low) * _BILLION // interface.unit
        return _captured(interface, time, body[20 : 20 + captured], size)

    def _simple(self, body: bytes) -> Captured | None:
        if len(body) < 4 or not self._interfaces:
            raise self._source.damage("a packet without an interface, or without a length")
        (size,) = struct.unpack_from(f"{self._order}I", body)
        interface = self._interfaces[0]
        most = min(size, interface.snap or size, len(body) - 4)
        return _captured(interface, 0, body[4 : 4 + most], size)


def read_pcapng(source: Source, link: str) -> Iterator[Captured]:
    """Read the frames of a file one after another.

    Args:
        source: the file, behind its first four bytes.
        link: where the frames were seen, if the file does not say it.

    Returns:
        The frames; of an interface that is not Ethernet's they are empty.

    Raises:
        DamageError: the file goes wrong.
    """
    return _Reader(source, link).frames()


def _ticks(resolution: int) -> int:
    """Return how many ticks are a second: a power of 10, or of 2 if the highest bit is set."""
    power = min(resolution & 0x7F, _FINEST)
    return 1 << power if resolution & 0x80 else int(10**power)


def _captured(interface: _Interface, time: int, frame: bytes, size: int) -> Captured:
    seen = frame if interface.ethernet else b""
    return Captured(time, interface.link, seen, max(size, len(frame)))


STANDARD_INPUT = "-"
_ENDINGS = (".pcap", ".pcapng")


class CaptureFiles:
    """Some capture files that are read together, once. A context manager.

    Where one is damaged, what comes before and the other files are read nevertheless.

    Args:
        names: files; folders stand for the files ``.pcap`` and ``.pcapng`` in them, and ``-``
            for the standard input.

    Attributes:
        damages: what was wrong with those that were read.

    Raises:
        CaptureError: one cannot be opened, or is no capture.
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
            found = sorted(each for each in Path(name).iterdir() if each.suffix in _ENDINGS)
        except OSError as error:
            raise CaptureError(f"Cannot read {name}: {error.strerror}.") from error
        if not found:
            raise CaptureError(f"There is no {' and no '.join(_ENDINGS)} file in {name}.")
        files.extend(map(str, found))
    if files.count(STANDARD_INPUT) > 1:
        raise CaptureError("The standard input (-) can be read once.")
    return files


def _begin(name: str, stack: ExitStack) -> Iterator[Captured]:
    if name == STANDARD_INPUT:
        stream: BinaryIO = sys.stdin.buffer
        source, link = Source(stream, "The standard input"), STANDARD_INPUT
    else:
        try:
            stream = stack.enter_context(open_regular(Path(name)))
        except OSError as error:
            raise CaptureError(f"Cannot read {name}: {error.strerror}.") from error
        source, link = Source(stream, name), Path(name).stem
    try:
        magic = source.take(4, "its first number")
    except DamageError as error:
        raise CaptureError(f"{source.name} is no capture: it has {source.at} bytes.") from error
    if is_pcap(magic):
        return read_pcap(source, magic, link)
    if magic == PCAPNG:
        return read_pcapng(source, link)
    raise CaptureError(
        f"{source.name} is neither a pcap nor a pcapng file; "
        "`tcpdump -w` and Wireshark write such files."
    )
