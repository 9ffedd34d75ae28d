# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What arrives at a worker, with a place for what arrives too early.

When the `advance` for this worker is late or lost, the others have moved on and
the first sums of the next block may overtake it. They come only once: whoever
waits at the barrier keeps them for the block that follows.
"""

from collections import deque

from switchgnn.host.link import Link

_KEPT_AT_MOST = 1 << 17


class Inbox:
    """Receives frames from a link and keeps early ones."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._kept: deque[bytes] = deque(maxlen=_KEPT_AT_MOST)

    def receive(self, seconds: float) -> memoryview | None:
        """Return the next frame, valid until the next call, or None after ``seconds``."""
        return self._link.receive(seconds)

    def keep(self, frame: memoryview) -> None:
        """Keep a frame that is not for now."""
        self._kept.append(bytes(frame))

    def take_kept(self) -> list[memoryview]:
        """Return the kept frames in the order of arrival, and forget them."""
        frames = [memoryview(frame) for frame in self._kept]
        self._kept.clear()
        return frames
