"""The predicted traffic of exchanges between hosts alone, for comparison."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from switchgnn.base.array_types import Int64s
from switchgnn.host.direct.frames import GROUP
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.schedule import count_rows
from switchgnn.host.registry import TRANSPORTS
from switchgnn.host.wire.header import BODY_AT
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges


class Exchanges(NamedTuple):
    """`times` exchanges in one direction, of features of one width."""

    direction: Direction
    width: int
    times: int


@dataclass(frozen=True, eq=False)
class HostTraffic:
    """Bytes that hosts alone would send each other without losses.

    `mtu` is that of their frames. `pairs`, int64[W, W]: bytes of the frames from worker a to worker
    b with their headers, and of the acknowledgements for those from b to a, one for eight frames.
    """

    mtu: int | str
    pairs: Int64s

    @property
    def up(self) -> list[int]:
        """The bytes that each worker sends."""
        sent: list[int] = self.pairs.sum(axis=1).tolist()
        return sent

    @property
    def down(self) -> list[int]:
        """The bytes that each worker receives."""
        received: list[int] = self.pairs.sum(axis=0).tolist()
        return received

    def between(self, group_of_worker: Iterable[int]) -> int:
        """Return the bytes between workers of different groups."""
        group = np.array([*group_of_worker])
        return int(self.pairs[group[:, None] != group].sum())


def host_traffic(
    boundary: BoundaryEdges, workers: int, exchanges: Iterable[Exchanges], framing: Framing
) -> dict[str, HostTraffic]:
    """Predict the traffic of exchanges without the switch, by the names of their transports."""
    asked = list(exchanges)
    found: dict[str, HostTraffic] = {}
    for kind in TRANSPORTS:
        if kind.by_copy is None:
            continue
        forward = count_rows(boundary, workers, kind.by_copy).rows
        pairs = np.zeros((workers, workers), dtype=np.int64)
        for each in asked:
            rows = forward if each.direction is Direction.FORWARD else forward.T
            acknowledged = -(-framing.frames(rows, each.width) // GROUP)
            pairs += each.times * framing.frame_bytes(rows, each.width)
            pairs += each.times * BODY_AT * acknowledged.T
        found[kind.name] = HostTraffic(framing.told, pairs)
    return found
