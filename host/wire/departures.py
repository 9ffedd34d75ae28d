# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that are to leave together, as few system calls as their order allows."""

from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.link import Link


class Departures:
    """Collects frames; those that lie one behind the other leave in one step."""

    def __init__(self) -> None:
        self._spans: list[tuple[FrameRows, int, int]] = []

    def add(self, rows: FrameRows, place: int) -> None:
        """Append a frame."""
        if self._spans:
            last, first, end = self._spans[-1]
            if last is rows and end == place:
                self._spans[-1] = (rows, first, end + 1)
                return
        self._spans.append((rows, place, place + 1))

    def leave(self, link: Link) -> None:
        """Send them all.

        Raises:
            LinkError: the link is gone.
        """
        for rows, first, end in self._spans:
            link.send_rows(rows, first, end - first)
        self._spans.clear()
