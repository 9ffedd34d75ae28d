# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tells the other workers how many packets come marked, and hears it from them.

What waits in this worker's queue are sums of the others' features, so they have
to slow down, not it alone. How much follows from the plan: it says how many sums a block has, and
how many features this worker sends in it.
"""

from collections.abc import Sequence

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire.header import Header, Kind
from switchgnn.planner.plan.manifest import Manifest

_DATA = (Kind.SUM, Kind.FEATURE)
_MOST_TOLD = 0xFFFF


class Notifier:
    """Sends a NOTICE to all workers, at most once per round trip, and takes theirs.

    Args:
        endpoint: the worker that tells the others.
        features_per_sum: of each block, as `features_per_sum` returns them.
    """

    def __init__(self, endpoint: Endpoint, features_per_sum: Sequence[float] = ()) -> None:
        self._endpoint = endpoint
        self._features_per_sum = features_per_sum
        self._last = float("-inf")
        self._untold = 0

    def notify(self, marked: Header) -> None:
        """Pass on that this packet came marked, if it is a sum or a feature."""
        if marked.kind not in _DATA:
            return
        self._untold += 1
        now = self._endpoint.clock.now()
        if now - self._last < self._endpoint.round_trip.smoothed:
            return
        self._last = now
        header = Header(
            kind=Kind.NOTICE,
            src_id=self._endpoint.worker,
            count=min(self._untold, _MOST_TOLD),
            round=marked.round,
            block_id=marked.block_id,
            fragment=marked.fragment,
        )
        self._untold = 0
        self._endpoint.send(header)
        self._endpoint.tally.notices += 1

    def take(self, notice: Header) -> None:
        """Take the word of a worker, this one included, for how much came marked."""
        if 1 <= notice.block_id <= len(self._features_per_sum):
            features = notice.count * self._features_per_sum[notice.block_id - 1]
            self._endpoint.congestion.marked(features)


def features_per_sum(manifest: Manifest, schedules: Sequence[BlockSchedule]) -> list[float]:
    """Return how many features this worker sends for each sum that all workers get, by block.

    Args:
        manifest: says how many sums a direction has. Its blocks have about as many each.
        schedules: what the worker sends in each block, in order.
    """
    ratios = [0.0] * len(schedules)
    for direction in manifest.directions.values():
        blocks = direction.block_numbers
        sums = sum(direction.prediction.packets_down)
        for block in blocks if sums else ():
            ratios[block - 1] = schedules[block - 1].frames.count * len(blocks) / sums
    return ratios
