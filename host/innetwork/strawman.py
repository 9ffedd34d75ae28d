# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The workers' side of the strawman (section 2.3.2): sums in parts, and what overflowed.

A switch that hands out its slots first come, first served sums only what comes while a
vertex has one. The rest it passes on as it is, and the worker adds it to the switch's part.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.innetwork.receiver import IN_DOUBT, Features, SumReceiver
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.innetwork.transport import InNetworkTransport, open_in_network
from switchgnn.host.transport import WorkerEnd
from switchgnn.host.wire.header import BODY_AT, Header, lanes_of

_IDS = 1 << 32


@dataclass(frozen=True, eq=False)
class _Part:
    """What the switch has summed.

    Attributes:
        count: how many features.
        sources: the ids of their sources, added up modulo 2^32.
        lanes: int32[W], the numbers of the fragment.
    """

    count: int
    sources: int
    lanes: NDArray[np.int32]


class PartReceiver(SumReceiver):
    """The sums of one fragment, each from one part of the switch and what overflowed.

    A sum is right when its part and its overflowed features are as many as there are
    neighbours, each feature counted once, and the ids of their sources add up to those of
    the neighbours: a switch that restarts may sum again what it had passed on before.
    Anything else gives way to the raw features of all neighbours.
    """

    # A sum is not right by its count alone.
    _awaits = IN_DOUBT

    def __init__(
        self,
        endpoint: Endpoint,
        schedule: BlockSchedule,
        *,
        place: tuple[int, int, int],
        began: float,
        fetched: Features | None = None,
    ) -> None:
        super().__init__(endpoint, schedule, place=place, began=began)
        self._parts: dict[int, _Part] = {}
        self._overflowed: dict[int, set[int]] = {}
        self._copied: set[int] = set()

    def take_sum(self, header: Header, frame: memoryview, now: float) -> bool:
        """Take the part of a sum that the switch has made.

        `now`: the time, in seconds of the endpoint's clock. Returns whether it is news.
        """
        place = self._schedule.receive_place.get(header.dst_id)
        if place is None or not 1 <= header.count <= self._schedule.receive_count[place]:
            self._tally.wrong += 1
            return False
        if not self._awaited[place] or place in self._parts:
            self._tally.repeated += 1
            return False
        if place in self._doubts:
            self._tally.sums_recalled += 1
        self._tally.sums_received += 1
        self._parts[place] = _Part(header.count, header.src_id, _lanes(header, frame))
        self._complete(place, now)
        return True

    def take_overflow(self, header: Header, frame: memoryview, now: float) -> bool:
        """Take a feature that found no slot.

        `now`: the time, in seconds of the endpoint's clock. Returns whether it is news.
        """
        place, source = self._schedule.receive_place.get(header.dst_id), header.src_id
        if place is None or not self._is_neighbour(place, source):
            self._tally.wrong += 1
            return False
        overflowed = self._overflowed.setdefault(place, set())
        if not self._awaited[place] or source in overflowed:
            self._tally.repeated += 1
            return False
        self._tally.overflows += 1
        self._tally.overflow_copies += source not in self._copied
        self._copied.add(source)
        overflowed.add(source)
        self._attempts = 0
        self._quiet_since = now
        self._keep_feature(source, _lanes(header, frame), now)
        if self._awaited[place]:
            self._complete(place, now)
        return True

    def take_missing(self, header: Header, now: float) -> bool:
        """Take the switch's word on a sum that does not come; tell whether it is news.

        When it has seen all contributions, the slot serves another vertex: what was lost on
        the way here is lost.
        """
        place = self._schedule.receive_place.get(header.dst_id)
        if place is None or not self._awaited[place]:
            return False
        if header.count >= self._schedule.receive_count[place]:
            self._attempts = self._round_trip.answered(self._attempts)
            return self._fetch_all(place, now)
        return super().take_missing(header, now)

    def _is_neighbour(self, place: int, source: int) -> bool:
        neighbours = self._schedule.neighbour_vertex[self._schedule.neighbour_slice(place)]
        at = int(np.searchsorted(neighbours, source))
        return at < len(neighbours) and int(neighbours[at]) == source

    def _complete(self, place: int, now: float) -> None:
        """Add up, if all is here; fetch, if it can never be right."""
        part = self._parts.get(place, _NO_PART)
        overflowed = self._overflowed.get(place, set())
        here, expected = part.count + len(overflowed), self._schedule.receive_count[place]
        if here < expected:
            return
        ids = part.sources + sum(overflowed) - sum(self._schedule.neighbours_of(place))
        if here > expected or ids % _IDS:
            self._tally.wrong += 1
            self._fetch_all(place, now)
            return
        total = sum((self._features[source] for source in overflowed), part.lanes)
        self._finish(place, memoryview(total.astype(">i4").tobytes()), now)


class StrawmanExchange(InNetworkExchange):
    """One worker's part in an exchange over the strawman's switch; see ``InNetworkExchange``.

    Its ``expected_traffic`` is the least there is: that without overflow.
    """

    _strawman = True
    _receiver = PartReceiver


def open_strawman(end: WorkerEnd) -> AbstractContextManager[InNetworkTransport]:
    """Open the transport `strawman`; see ``open_in_network``."""
    return open_in_network(end, StrawmanExchange)


def _lanes(header: Header, frame: memoryview) -> NDArray[np.int32]:
    number = lanes_of(header.fragment)
    return np.frombuffer(frame, dtype=">i4", count=number, offset=BODY_AT).astype(np.int32)


_NO_PART = _Part(0, 0, np.zeros(1, dtype=np.int32))
