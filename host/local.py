# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One worker alone: it has no remote neighbours."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.errors import TransportError
from switchgnn.host.transport import NO_TRAFFIC, WorkerEnd, check_rows
from switchgnn.host.wire.link import Traffic
from switchgnn.planner.direction import Direction


class LocalTransport:
    """Sums over no remote neighbours: zeros.

    Args:
        vertices: how many vertices the worker holds.
        workers: must be 1.

    Raises:
        TransportError: there are more workers.
    """

    def __init__(self, vertices: int, workers: int = 1) -> None:
        if workers != 1:
            raise TransportError(
                f"The transport local is for one worker, but there are {workers}: "
                "take host, host-partial or switch."
            )
        self._vertices = vertices

    def aggregate(self, rows: NDArray[np.float32], direction: Direction) -> NDArray[np.float32]:
        """Return float32[n, F] zeros; see ``Transport``."""
        check_rows(rows, self._vertices, 0)
        return np.zeros_like(rows)

    def expected_traffic(self, _width: int, _direction: Direction) -> Traffic:
        """Return no traffic."""
        return NO_TRAFFIC

    def attend(self, until: Callable[[], bool]) -> None:
        """Do nothing: there is no other worker."""

    def next_epoch(self) -> None:
        """Do nothing: nothing is sampled."""

    @property
    def traffic(self) -> Traffic:
        """None at all."""
        return NO_TRAFFIC

    def close(self) -> None:
        """Do nothing: there is no other worker."""


@contextmanager
def open_local(end: WorkerEnd) -> Iterator[LocalTransport]:
    """Open the transport `local`.

    Raises:
        TransportError: there are more workers.
    """
    yield LocalTransport(end.vertices, end.workers)
