# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the switch needs of a port."""

from collections.abc import Callable
from typing import Protocol


class Port(Protocol):
    """An attached port; neither receiving nor sending ever blocks."""

    @property
    def receive(self) -> Callable[[int], bytes]:
        """Function that returns the next frame up to a length, or raises BlockingIOError."""

    @property
    def frame_bytes(self) -> int:
        """The length of the longest frame."""

    @property
    def may_refuse(self) -> bool:
        """Whether the kernel keeps frames that it is given, and takes no more of them for a time.

        Such a port is given one frame at a time, so that the next one waits where the program
        reads the depth of the queue.
        """

    def fileno(self) -> int:
        """Return the file descriptor to wait on."""

    def send(self, frame: bytes) -> bool:
        """Send a frame and return whether the kernel took it.

        Raises:
            BlockingIOError: the port cannot take a frame now.
        """

    def close(self) -> None:
        """Detach the port."""
