# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tells the other workers that packets come marked.

What waits in this worker's queue are sums of the others' features, so they have
to slow down, not it alone.
"""

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.wire.header import Header, Kind


class Notifier:
    """Sends a NOTICE to all workers, at most once per round trip.

    Args:
        endpoint: the worker that tells the others.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._last = float("-inf")

    def notify(self, marked: Header) -> None:
        """Pass on that this packet came marked."""
        now = self._endpoint.clock.now()
        if now - self._last < self._endpoint.round_trip.smoothed:
            return
        self._last = now
        header = Header(
            kind=Kind.NOTICE,
            src_id=self._endpoint.worker,
            round=marked.round,
            block_id=marked.block_id,
            fragment=marked.fragment,
        )
        self._endpoint.send(header)
        self._endpoint.tally.notices += 1
