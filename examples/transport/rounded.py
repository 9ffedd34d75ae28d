"""Copies of rows between workers, rounded to 16 bits: what would that do to a training?"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.base.operations import Operation
from switchgnn.host.direct.transport import DirectTransport, open_direct
from switchgnn.host.links.transport import Transport, WorkerEnd
from switchgnn.host.wire.link import Traffic
from switchgnn.planner.base.direction import Direction


class RoundedTransport(Transport):
    """The transport `host`, but each row is rounded to float16 before it is sent.

    Args:
        copies: what sends the rows; it travels with 32 bits all the same.
    """

    def __init__(self, copies: DirectTransport) -> None:
        self._copies = copies

    def aggregate(
        self,
        rows: NDArray[np.float32],
        direction: Direction,
        tensor_id: int = 0,
        operation: Operation = Operation.SUM,
    ) -> NDArray[np.float32]:
        """Return the sums of rounded rows; see ``Transport``."""
        rounded = rows.astype(np.float16).astype(np.float32)
        return self._copies.aggregate(rounded, direction, tensor_id, operation)

    def attend(self, until: Callable[[], bool]) -> None:
        """Answer other workers while nothing is exchanged."""
        self._copies.attend(until)

    def next_epoch(self) -> None:
        """Begin another epoch."""
        self._copies.next_epoch()

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes so far."""
        return self._copies.traffic

    def expected_traffic(self, width: int, direction: Direction) -> Traffic:
        """Return what one exchange puts on the link; see ``Transport``."""
        return self._copies.expected_traffic(width, direction)

    def close(self) -> None:
        """Take leave of the other workers."""
        self._copies.close()


@contextmanager
def open_rounded(end: WorkerEnd) -> Iterator[RoundedTransport]:
    """Open the transport `host-rounded`.

    Raises:
        TransportError: the worker was not given a schedule.
        HostError: the link cannot be opened, or the schedule cannot be read.
    """
    with open_direct(end) as copies:
        yield RoundedTransport(copies)
