# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Files as tcpdump writes them: pcap, with microseconds or nanoseconds.

https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-05.html
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from switchgnn.capture.captured import ETHERNET, LONGEST_FRAME, Captured
from switchgnn.capture.errors import CaptureError
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
