# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""When to wait for more frames before a batch is received."""

import time

# A link lets this many frames gather where they trickle in, but never for longer than this.
_TOGETHER = 16
_LONGEST_PAUSE = 0.001
# After a longer silence frames no longer trickle in.
_SILENCE = 0.002
# The weight of one batch in the time between two frames.
_SPACING_WEIGHT = 0.25


class Trickle:
    """Pauses between batches, so that frames of a slow line arrive several at a time.

    On a slow line every frame arrives alone, and waking up for each one takes two fifths of the
    processor time of an exchange. Network interfaces moderate their interrupts for this reason.
    """

    def __init__(self) -> None:
        self._spacing = 0.0
        self._frames = _TOGETHER
        self._received_at = float("-inf")

    def received(self, frames: int, now: float) -> None:
        """Take note of a batch."""
        since, self._received_at = now - self._received_at, now
        self._frames = frames
        if since < _SILENCE:
            self._spacing += _SPACING_WEIGHT * (since / frames - self._spacing)

    def pause(self, now: float) -> float:
        """Return the seconds in which about as many frames arrive as a batch should have.

        `now`: the time in seconds. Returns 0 after a large batch or a silence, where the next frame
        is not to be delayed.
        """
        if self._frames >= _TOGETHER or now - self._received_at >= _SILENCE:
            return 0.0
        return min(_LONGEST_PAUSE, _TOGETHER * self._spacing)

    def took(self, frames: int) -> None:
        """Take note of a batch that has just been received; see ``received``."""
        self.received(frames, time.monotonic())

    def gather(self, seconds: float) -> float:
        """Let frames gather where they trickle in.

        `seconds`: how long the caller would wait for the first one. Returns how long it may still
        wait, in seconds.
        """
        pause = min(self.pause(time.monotonic()), seconds)
        if pause <= 0:
            return seconds
        time.sleep(pause)
        return seconds - pause
