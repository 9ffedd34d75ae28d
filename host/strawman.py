"""The workers' side of the strawman (section 2.3.2): partial sums, and features that overflowed.

The switch hands out its slots first come, first served. It sums the features that arrive while a
vertex has a slot and forwards the others, which the worker adds to the switch's part.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from switchgnn.base.array_types import Int32s
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.innetwork.receiver import IN_DOUBT, SumReceiver
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire.header import Header

_IDS = 1 << 32


@dataclass(frozen=True, eq=False)
class _Part:
    """The sum of `count` features; `sources`: the sum of their source ids modulo 2^32."""

    count: int
    sources: int
    lanes: Int32s


class PartReceiver(SumReceiver):
    """Receives the sums of one fragment, each as one part of the switch and overflowed features.

    A sum is correct if its part and the overflowed features, each counted once, are as many as
    there are neighbours, and their source ids add up to those of the neighbours: a restarted switch
    may sum features again that it had forwarded before. Otherwise all neighbours are fetched.

    `fetched` is unused: the round has only this block, and it would hold all overflowed features.
    """

    def __init__(self, endpoint: Endpoint, schedule: BlockSchedule, **unit: Any) -> None:  # noqa: ANN401
        super().__init__(endpoint, schedule, **unit | {"fetched": None})
        # The count alone does not prove a sum, so no fast path may take it.
        self.awaited[:] = IN_DOUBT
        self._parts: dict[int, _Part] = {}
        self._overflowed: dict[int, set[int]] = {}
        self._copied: set[int] = set()

    def take_sum(self, header: Header, frame: memoryview, now: float) -> bool:
        """Take the switch's part of a sum; return whether it is news."""
        index = self._schedule.receive_index.get(header.dst_id)
        if index is None or not 1 <= header.count <= self._schedule.receive_count[index]:
            self._counters.wrong += 1
            return False
        if not self._awaited[index] or index in self._parts:
            self._counters.repeated += 1
            return False
        if index in self._doubts:
            self._counters.sums_recalled += 1
        self._counters.sums_received += 1
        self._parts[index] = _Part(header.count, header.src_id, self._rows_of(header, frame)[0])
        self._complete(index, now)
        return True

    def take_feature(self, header: Header, frame: memoryview, now: float) -> bool:
        """Take a feature that was fetched or found no slot; return whether it is news."""
        if header.resend:
            return super().take_feature(header, frame, now)
        index, source = self._schedule.receive_index.get(header.dst_id), header.src_id
        if index is None or source not in self._schedule.neighbours_of(index):
            self._counters.wrong += 1
            return False
        overflowed = self._overflowed.setdefault(index, set())
        if not self._awaited[index] or source in overflowed:
            self._counters.repeated += 1
            return False
        self._counters.overflows += 1
        self._counters.overflow_copies += source not in self._copied
        self._copied.add(source)
        overflowed.add(source)
        self._attempts = 0
        self._quiet_since = now
        self._keep_feature(source, self._rows_of(header, frame)[0], now)
        if self._awaited[index]:
            self._complete(index, now)
        return True

    def take_missing(self, header: Header, now: float) -> bool:
        """Take the answer that a sum is not in its slot; return whether it is news.

        Once the switch has seen all contributions, the slot serves another vertex, and the lost
        sum cannot be sent again.
        """
        index = self._schedule.receive_index.get(header.dst_id)
        if index is None or not self._awaited[index]:
            return False
        if header.count >= self._schedule.receive_count[index]:
            self._attempts = self._round_trip.answered(self._attempts)
            return self._fetch_all(index, now)
        return super().take_missing(header, now)

    def _fetch_all(self, index: int, now: float) -> bool:
        """Fetch the features of a sum; return whether that was not under way yet."""
        doubt = self._doubt(index)
        if doubt.fetching:
            return False
        doubt.since = now
        self._start_fetching(index, doubt)
        return True

    def _complete(self, index: int, now: float) -> None:
        """Add up if all has arrived; fetch if the sum cannot become correct."""
        part = self._parts.get(index, _NO_PART)
        overflowed = self._overflowed.get(index, set())
        here, expected = part.count + len(overflowed), self._schedule.receive_count[index]
        if here < expected:
            return
        ids = part.sources + sum(overflowed) - sum(self._schedule.neighbours_of(index))
        if here > expected or ids % _IDS:
            self._counters.wrong += 1
            self._fetch_all(index, now)
            return
        total = sum((self._features[source] for source in overflowed), part.lanes)
        self._finish(index, total, now)


class StrawmanExchange(InNetworkExchange):
    """One worker's part in an exchange over the strawman's switch; see ``InNetworkExchange``.

    Its ``expected_traffic`` is a lower bound: that without overflow.
    """

    _strawman = True
    _receiver = PartReceiver


_NO_PART = _Part(0, 0, np.zeros(1, dtype=np.int32))
