# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tells the other workers that packets come marked.

What waits in this worker's queue are sums of the others' features, so they have
to slow down, not it alone.
"""

import time

from switchgnn.host.innetwork.tally import InNetworkTally
from switchgnn.host.round_trip import RoundTrip
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import Header, Kind
from switchgnn.host.wire.link import Link


class Notifier:
    """Sends a NOTICE to all workers, at most once per round trip."""

    def __init__(
        self,
        link: Link,
        addresses: Addresses,
        worker: int,
        round_trip: RoundTrip,
        tally: InNetworkTally,
    ) -> None:
        self._link = link
        self._addresses = addresses
        self._worker = worker
        self._round_trip = round_trip
        self._tally = tally
        self._last = float("-inf")

    def notify(self, marked: Header) -> None:
        """Pass on that this packet came marked."""
        now = time.monotonic()
        if now - self._last < self._round_trip.smoothed:
            return
        self._last = now
        header = Header(
            kind=Kind.NOTICE,
            src_id=self._worker,
            round=marked.round,
            block_id=marked.block_id,
            fragment=marked.fragment,
        )
        self._link.send(self._addresses.frame(header.pack(b"")))
        self._tally.notices += 1
