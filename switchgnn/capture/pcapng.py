# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Files as Wireshark writes them: pcapng.

https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from switchgnn.capture.captured import ETHERNET, LONGEST_FRAME, Captured
from switchgnn.capture.source import Source

PCAPNG = b"\x0a\x0d\x0d\x0a"
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_BILLION = 1_000_000_000
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
