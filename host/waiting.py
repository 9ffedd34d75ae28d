# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""For how long a worker has had nothing to do but to wait for others."""

from types import TracebackType

from switchgnn.base.clock import Clock


class Waiting:
    """A stopwatch; a context manager around all that is waiting. Other threads may read it.

    Args:
        clock: what time it is where the link is.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Both change together, so that a reader never counts a time twice.
        self._state: tuple[float, float | None] = (0.0, None)

    @property
    def seconds(self) -> float:
        """All of it, with what is going on now."""
        before, since = self._state
        return before if since is None else before + max(0.0, self._clock.now() - since)

    def start(self) -> None:
        """Begin to wait, if that is not so already."""
        if self._state[1] is None:
            self._state = (self._state[0], self._clock.now())

    def stop(self) -> None:
        """Wait no longer."""
        self._state = (self.seconds, None)

    def __enter__(self) -> None:
        self.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.stop()
