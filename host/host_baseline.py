"""The predicted traffic of exchanges between hosts alone, for comparison."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from switchgnn.base.array_types import Int64s
from switchgnn.host.direct.frames import GROUP
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import copies
from switchgnn.host.direct.schedule import EdgeChoice, count_rows
from switchgnn.host.registry import HOST, HOST_PARTIAL
from switchgnn.host.wire.header import BODY_AT
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.sending.between_hosts import fewest_rows

# By the names of the transports.
_WAYS: Mapping[str, EdgeChoice] = {HOST.name: copies, HOST_PARTIAL.name: fewest_rows}


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
    """Predict the traffic of exchanges without the switch, for `host` and `host-partial`."""
    asked = list(exchanges)
    found: dict[str, HostTraffic] = {}
    for name, choose in _WAYS.items():
        forward = count_rows(boundary, workers, choose).rows
        pairs = np.zeros((workers, workers), dtype=np.int64)
        for each in asked:
            # Back go as many rows, the other way.
            rows = forward if each.direction is Direction.FORWARD else forward.T
            acknowledged = -(-framing.frames(rows, each.width) // GROUP)
            pairs += each.times * framing.frame_bytes(rows, each.width)
            pairs += each.times * BODY_AT * acknowledged.T
        found[name] = HostTraffic(framing.told, pairs)
    return found
