# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Bounds on sending and waiting, as the user gives them."""

from dataclasses import dataclass
from types import TracebackType

from switchgnn.base.clock import Clock
from switchgnn.host.congestion import SHORTEST_TIMEOUT

_LARGEST_GROUP = 8
_LONGEST_BEAT = 0.5
# A patience must hold many, as beats are lost on bad links.
_BEATS = 20


@dataclass(frozen=True)
class Pace:
    """Bounds on sending and waiting.

    Attributes:
        window: features in flight at most. On interfaces with offloads BMv2 reads each port
            through a ring of about 30 frames and loses what does not fit
            (docs/limitations.md).
        patience: seconds of silence after which the worker gives up the switch or another worker;
            and seconds without any progress of its own after which it gives up itself.
        skew: seconds beyond the patience that others may be silent where they may be computing,
            which is before they open a round; between hosts always. Of a worker that computes
            nobody hears anything, so this is also how late its end is noticed.
        congestion_control: slow down when packets come marked.
        shortest_timeout: seconds that an answer is waited for at least, before it is asked for
            again. More than software switches need keeps a busy machine from repeating.
        first_window: features in flight at most before anything is known of the network.
    """

    window: int = 16
    patience: float = 20.0
    congestion_control: bool = True
    shortest_timeout: float = SHORTEST_TIMEOUT
    skew: float = 0.0
    first_window: int = 16

    @property
    def group_size(self) -> int:
        """Features that are acknowledged together: half a window, and at most 8."""
        return max(1, min(self.window // 2, _LARGEST_GROUP))

    @property
    def beat(self) -> float:
        """Seconds after which a worker says again that it is there, at most."""
        return min(_LONGEST_BEAT, self.patience / _BEATS)


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
