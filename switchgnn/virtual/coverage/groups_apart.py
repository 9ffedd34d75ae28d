# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How many groups of features are under way at once."""

from collections.abc import Iterator

from switchgnn.host.pace import Pace

_BLOCK, _COUNT, _FRAGMENT = slice(42, 44), slice(44, 46), slice(48, 50)
_ROUND = slice(52, 56)
# Where the number of a group is in a frame, and the lowest one that is of interest.
GROUP = slice(50, 52)
MANY = (8).to_bytes(2, "big")


class GroupsApart:
    """Compares the groups that workers send with the first one that is not acknowledged.

    Args:
        window: of the workers.
    """

    def __init__(self, window: int) -> None:
        self._whole = Pace(window).group_size.to_bytes(2, "big")
        self._places: dict[int, bytes] = {}
        self._acknowledged: dict[int, set[bytes]] = {}
        self._furthest: dict[int, int] = {}

    @property
    def furthest(self) -> Iterator[int]:
        """How far apart they were, of each worker that had many."""
        return iter(self._furthest.values())

    def sent(self, worker: int, frame: bytes) -> None:
        """Note a feature of a group from ``MANY``."""
        whole: set[bytes] = set()
        if self._places.get(worker) == _place(frame):
            whole = self._acknowledged[worker]
        group = int.from_bytes(frame[GROUP], "big")
        first = next(n for n in range(group + 1) if n == group or n.to_bytes(2, "big") not in whole)
        self._furthest[worker] = max(group - first, self._furthest.get(worker, 0))

    def acknowledged(self, worker: int, frame: bytes) -> None:
        """Note an acknowledgement."""
        place = _place(frame)
        if place != self._places.get(worker):
            self._places[worker], self._acknowledged[worker] = place, set()
        if frame[_COUNT] == self._whole:
            self._acknowledged[worker].add(frame[GROUP])


def _place(frame: bytes) -> bytes:
    return frame[_ROUND] + frame[_BLOCK] + frame[_FRAGMENT]
