# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The sums that the switch makes, behind the interface of the others."""

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.exchange import Exchange
from switchgnn.host.link import Link, Traffic
from switchgnn.transports.direction import Direction
from switchgnn.transports.errors import TransportError
from switchgnn.transports.transport import traffic_since


class SwitchTransport:
    """In-network sums.

    Args:
        exchange: this worker's exchange.
        link: the exchange's link, for its counters.
        symmetric: whether each edge of the graph exists in both directions; BACKWARD is
            then the same as FORWARD.
    """

    def __init__(self, exchange: Exchange, link: Link, *, symmetric: bool = True) -> None:
        self._exchange = exchange
        self._link = link
        self._symmetric = symmetric
        self._start = link.traffic

    def aggregate(self, rows: NDArray[np.float32], direction: Direction) -> NDArray[np.float32]:
        """Return float32[n, F], off by at most ``FixedPoint.error_bound()``; see ``Transport``.

        Raises:
            TransportError: BACKWARD on a graph that is not symmetric.
            HostError: as ``Exchange.aggregate``.
        """
        if direction is Direction.BACKWARD and not self._symmetric:
            raise TransportError(
                "The plan in the switch sums along the edges only, and this graph is not "
                "symmetric: take host or host-partial to sum over the transposed edges."
            )
        return self._exchange.aggregate(rows)

    def next_epoch(self) -> None:
        """Nothing is sampled."""

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes of the exchange so far."""
        return traffic_since(self._start, self._link.traffic)

    def close(self) -> None:
        """The last barrier was the farewell."""
