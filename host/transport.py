# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One interface for every way to get the sums over remote neighbours."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.errors import FeatureError
from switchgnn.host.wire.link import Traffic
from switchgnn.planner.direction import Direction

NO_TRAFFIC = Traffic(0, 0, 0, 0)


class Transport(Protocol):
    """One worker's end. All workers make the same calls in the same order."""

    def aggregate(self, rows: NDArray[np.float32], direction: Direction) -> NDArray[np.float32]:
        """Sum over the remote neighbours of each of this worker's vertices.

        Args:
            rows: float32[n, F], one row per vertex of this worker, ids ascending; any F
                from 1, the same for all workers.
            direction: which neighbours.

        Returns:
            float32[n, F]; 0 for a vertex without remote neighbours.

        Raises:
            SwitchGNNError: whatever stops an exchange.
        """

    def next_epoch(self) -> None:
        """Begin another epoch; whoever samples draws anew, the others do nothing."""

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes of this transport so far, as the link counted them."""

    def expected_traffic(self, width: int, direction: Direction) -> Traffic:
        """What one such exchange of this epoch puts on the link when nothing is lost."""

    def close(self) -> None:
        """Take leave of the other workers; the link stays open."""


def check_rows(rows: NDArray[np.float32], vertices: int, worker: int) -> None:
    """Refuse what is not float32[vertices, F].

    Raises:
        FeatureError: wrong shape or type.
    """
    if rows.ndim != 2 or rows.shape[0] != vertices or rows.shape[1] < 1:
        raise FeatureError(
            f"Worker {worker} holds {vertices} vertices: rows must have the shape "
            f"({vertices}, F) with F from 1, not {rows.shape}."
        )
    if rows.dtype != np.float32:
        raise FeatureError(f"Rows must be float32, not {rows.dtype}.")


def add_traffic(one: Traffic, other: Traffic) -> Traffic:
    """Return what passed in both."""
    return Traffic(*(a + b for a, b in zip(one, other, strict=True)))


def traffic_since(start: Traffic, now: Traffic) -> Traffic:
    """Return what passed a link between two readings."""
    return Traffic(*(after - before for before, after in zip(start, now, strict=True)))
