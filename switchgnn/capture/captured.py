# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A frame as it was captured."""

from typing import NamedTuple

# Of a frame; what tcpdump and Wireshark take.
LONGEST_FRAME = 1 << 18
ETHERNET = 1


class Captured(NamedTuple):
    """A frame, and when and where it was seen.

    Attributes:
        time: nanoseconds since 1970.
        link: where; the name of an interface, or that of a file without its ending.
        frame: its bytes, from the Ethernet header on, as far as they were captured.
        size: bytes that it had.
    """

    time: int
    link: str
    frame: bytes
    size: int
