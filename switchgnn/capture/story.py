# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A run's story in order: block by block, and told as soon as a block is over.

However long a capture is, few blocks are open at a time, and a limited number of features is
remembered.
"""

from collections.abc import Iterator

from switchgnn.capture.chapter import Chapter, Place, place_of
from switchgnn.capture.packet import Packet

_MOST_OPEN = 4
# About 25 MB.
_MOST_REMEMBERED = 1 << 18


class Story:
    """Takes packets in order, and gives the blocks that are over.

    Attributes:
        late: packets of blocks that had been told already.
        unsound: packets that say nothing for certain.
    """

    def __init__(self, most_open: int = _MOST_OPEN, remembered: int = _MOST_REMEMBERED) -> None:
        self.late = 0
        self.unsound = 0
        self._most_open, self._most_remembered = most_open, remembered
        self._open: dict[Place, Chapter] = {}
        # Of those that were told the last ones, so that what is late is not told as new.
        self._told: dict[Place, None] = {}

    def note(self, packet: Packet) -> Iterator[Chapter]:
        """Take a packet; return what is over, as far as one can tell."""
        if packet.fields is None or packet.problem is not None:
            self.unsound += 1
            return
        place = place_of(packet, packet.fields)
        if place in self._told:
            self.late += 1
            return
        chapter = self._open.get(place)
        if chapter is None:
            chapter = self._open[place] = Chapter(place, packet.captured.time)
        chapter.note(packet, packet.fields)
        while len(self._open) > self._most_open:
            yield self._close_first()
        yield from self._keep_memory_small()

    def rest(self) -> Iterator[Chapter]:
        """Return what is still open."""
        while self._open:
            yield self._close_first()

    def _close_first(self) -> Chapter:
        place = next(iter(self._open))
        self._told[place] = None
        if len(self._told) > 64 * self._most_open:
            del self._told[next(iter(self._told))]
        return self._open.pop(place)

    def _keep_memory_small(self) -> Iterator[Chapter]:
        while sum(each.remembered for each in self._open.values()) > self._most_remembered:
            if len(self._open) > 1:
                yield self._close_first()
            else:
                next(iter(self._open.values())).forget()
